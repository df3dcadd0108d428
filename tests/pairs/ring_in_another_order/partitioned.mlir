module @m attributes {mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<1xf32> , %1: tensor<1xf32> ) -> (tensor<3xf32> ) {
    %2 = "stablehlo.maximum"(%1, %1) {} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %13 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %14 = "stablehlo.convert"(%13) {} : (tensor<ui32>) -> tensor<i32>
    %15 = "stablehlo.constant"() {value = dense<[5, 1, 2, 3, 0, 4]> : tensor<6xi32>} : () -> tensor<6xi32>
    %16 = "stablehlo.dynamic_slice"(%15, %14) {slice_sizes = array<i64: 1>} : (tensor<6xi32>, tensor<i32>) -> tensor<1xi32>
    %17 = "stablehlo.reshape"(%16) {} : (tensor<1xi32>) -> tensor<i32>
    %27 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %28 = "stablehlo.constant"() {value = dense<0.00000000000000000e+00> : tensor<6xf32>} : () -> tensor<6xf32>
    %29, %30, %31 = "stablehlo.while"(%27, %2, %28) ({
    ^bb0(%3: tensor<i32>, %4: tensor<1xf32>, %5: tensor<6xf32>):
      %9 = "stablehlo.constant"() {value = dense<6> : tensor<i32>} : () -> tensor<i32>
      %41 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
      %42 = "stablehlo.add"(%3, %41) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %43 = "stablehlo.compare"(%42, %9) {comparison_direction = #stablehlo<comparison_direction LE>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%43) : (tensor<i1>) -> ()
    }, {
    ^bb0(%6: tensor<i32>, %7: tensor<1xf32>, %8: tensor<6xf32>):
      %11 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
      %12 = "stablehlo.add"(%6, %11) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %18 = "stablehlo.subtract"(%17, %6) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %19 = "stablehlo.constant"() {value = dense<6> : tensor<i32>} : () -> tensor<i32>
      %20 = "stablehlo.add"(%18, %19) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %21 = "stablehlo.constant"() {value = dense<6> : tensor<i32>} : () -> tensor<i32>
      %22 = "stablehlo.remainder"(%20, %21) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %23 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
      %24 = "stablehlo.multiply"(%22, %23) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %25 = "stablehlo.dynamic_update_slice"(%8, %7, %24) {} : (tensor<6xf32>, tensor<1xf32>, tensor<i32>) -> tensor<6xf32>
      %26 = "stablehlo.collective_permute"(%7) {source_target_pairs = dense<[[4, 1], [3, 5], [2, 3], [0, 4], [5, 0], [1, 2]]> : tensor<6x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<1xf32>) -> tensor<1xf32>
      "stablehlo.return"(%12, %26, %25) : (tensor<i32>, tensor<1xf32>, tensor<6xf32>) -> ()
    }) {} : (tensor<i32>, tensor<1xf32>, tensor<6xf32>) -> (tensor<i32>, tensor<1xf32>, tensor<6xf32>)
    %32 = "stablehlo.slice"(%31) {start_indices = array<i64: 0>, limit_indices = array<i64: 3>, strides = array<i64: 1>} : (tensor<6xf32>) -> tensor<3xf32>
    %33 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %34 = "stablehlo.convert"(%33) {} : (tensor<ui32>) -> tensor<i32>
    %35 = "stablehlo.constant"() {value = dense<[2, 0, 1, 1, 0, 2]> : tensor<6xi32>} : () -> tensor<6xi32>
    %36 = "stablehlo.dynamic_slice"(%35, %34) {slice_sizes = array<i64: 1>} : (tensor<6xi32>, tensor<i32>) -> tensor<1xi32>
    %37 = "stablehlo.reshape"(%36) {} : (tensor<1xi32>) -> tensor<i32>
    %38 = "stablehlo.dynamic_slice"(%32, %37) {slice_sizes = array<i64: 1>} : (tensor<3xf32>, tensor<i32>) -> tensor<1xf32>
    %39 = "stablehlo.subtract"(%38, %0) {} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %40 = "stablehlo.all_gather"(%39) {replica_groups = dense<[[4, 2, 5], [1, 3, 0]]> : tensor<2x3xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids, all_gather_dim = 0 : i64} : (tensor<1xf32>) -> tensor<3xf32>
    return %40 : tensor<3xf32>
  }
}
