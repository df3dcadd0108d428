module @m attributes {mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<2xi1> ) -> (tensor<2xi1> , tensor<4xi1> ) {
    %1 = "stablehlo.constant"() {value = dense<8> : tensor<4xi32>} : () -> tensor<4xi32>
    %2 = "stablehlo.constant"() {value = dense<-3> : tensor<2xi32>} : () -> tensor<2xi32>
    %3 = "stablehlo.all_gather"(%2) {replica_groups = dense<[[0, 1, 2], [3, 4, 5]]> : tensor<2x3xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids, all_gather_dim = 0 : i64} : (tensor<2xi32>) -> tensor<6xi32>
    %4 = "stablehlo.slice"(%3) {start_indices = array<i64: 0>, limit_indices = array<i64: 4>, strides = array<i64: 1>} : (tensor<6xi32>) -> tensor<4xi32>
    %5 = "stablehlo.compare"(%1, %4) {comparison_direction = #stablehlo<comparison_direction GT>} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %45 = "stablehlo.slice"(%0) {start_indices = array<i64: 1>, limit_indices = array<i64: 2>, strides = array<i64: 1>} : (tensor<2xi1>) -> tensor<1xi1>
    %46 = "stablehlo.slice"(%0) {start_indices = array<i64: 0>, limit_indices = array<i64: 1>, strides = array<i64: 1>} : (tensor<2xi1>) -> tensor<1xi1>
    %47 = "stablehlo.concatenate"(%45, %46) {dimension = 0 : i64} : (tensor<1xi1>, tensor<1xi1>) -> tensor<2xi1>
    %6 = "stablehlo.convert"(%47) {} : (tensor<2xi1>) -> tensor<2xi8>
    %7 = "stablehlo.convert"(%0) {} : (tensor<2xi1>) -> tensor<2xi8>
    %8 = "stablehlo.constant"() {value = dense<0> : tensor<4xi8>} : () -> tensor<4xi8>
    %9 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %10 = "stablehlo.convert"(%9) {} : (tensor<ui32>) -> tensor<i32>
    %11 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %12 = "stablehlo.divide"(%10, %11) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %13 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %14 = "stablehlo.remainder"(%12, %13) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %15 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %16 = "stablehlo.multiply"(%14, %15) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %17 = "stablehlo.dynamic_update_slice"(%8, %6, %16) {} : (tensor<4xi8>, tensor<2xi8>, tensor<i32>) -> tensor<4xi8>
    %18 = "stablehlo.all_reduce"(%17) ({
^bb0(%x18: tensor<i8>, %y18: tensor<i8>):
%z18 = "stablehlo.add"(%x18, %y18) : (tensor<i8>, tensor<i8>) -> tensor<i8>
"stablehlo.return"(%z18) : (tensor<i8>) -> ()
    }) {replica_groups = dense<[[3, 0], [4, 1], [5, 2]]> : tensor<3x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids} : (tensor<4xi8>) -> tensor<4xi8>
    %19 = "stablehlo.all_gather"(%7) {replica_groups = dense<[[2, 5], [0, 3], [1, 4]]> : tensor<3x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids, all_gather_dim = 0 : i64} : (tensor<2xi8>) -> tensor<4xi8>
    %20 = "stablehlo.select"(%5, %18, %19) {} : (tensor<4xi1>, tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    %21 = "stablehlo.add"(%20, %20) {} : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    %22 = "stablehlo.compare"(%21, %20) {comparison_direction = #stablehlo<comparison_direction GE>} : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi1>
    %23 = "stablehlo.compare"(%21, %21) {comparison_direction = #stablehlo<comparison_direction LE>} : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi1>
    %24 = "stablehlo.constant"() {value = dense<false> : tensor<4xi1>} : () -> tensor<4xi1>
    %25 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %26 = "stablehlo.convert"(%25) {} : (tensor<ui32>) -> tensor<i32>
    %27 = "stablehlo.constant"() {value = dense<[0, 0, 0, 1, 1, 1]> : tensor<6xi32>} : () -> tensor<6xi32>
    %28 = "stablehlo.dynamic_slice"(%27, %26) {slice_sizes = array<i64: 1>} : (tensor<6xi32>, tensor<i32>) -> tensor<1xi32>
    %29 = "stablehlo.reshape"(%28) {} : (tensor<1xi32>) -> tensor<i32>
    %30 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %31 = "stablehlo.multiply"(%29, %30) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %32 = "stablehlo.dynamic_update_slice"(%24, %0, %31) {} : (tensor<4xi1>, tensor<2xi1>, tensor<i32>) -> tensor<4xi1>
    %33 = "stablehlo.all_reduce"(%32) ({
^bb0(%x33: tensor<i1>, %y33: tensor<i1>):
%z33 = "stablehlo.or"(%x33, %y33) : (tensor<i1>, tensor<i1>) -> tensor<i1>
"stablehlo.return"(%z33) : (tensor<i1>) -> ()
    }) {replica_groups = dense<[[0, 3], [1, 4], [5, 2]]> : tensor<3x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids} : (tensor<4xi1>) -> tensor<4xi1>
    %34 = "stablehlo.select"(%23, %33, %22) {} : (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %35 = "stablehlo.compare"(%20, %21) {comparison_direction = #stablehlo<comparison_direction GE>} : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi1>
    %36 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %37 = "stablehlo.convert"(%36) {} : (tensor<ui32>) -> tensor<i32>
    %38 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %39 = "stablehlo.divide"(%37, %38) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %40 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %41 = "stablehlo.remainder"(%39, %40) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %42 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %43 = "stablehlo.multiply"(%41, %42) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %44 = "stablehlo.dynamic_slice"(%35, %43) {slice_sizes = array<i64: 2>} : (tensor<4xi1>, tensor<i32>) -> tensor<2xi1>
    return %44, %34 : tensor<2xi1>, tensor<4xi1>
  }
}
