module @m attributes {mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<2x1xi1> , %1: tensor<1x1xf32> , %2: tensor<1x1xi32> ) -> (tensor<2x1xi1> , tensor<1x1xi32> ) {
    %3 = "stablehlo.constant"() {value = dense<-2147483648> : tensor<i32>} : () -> tensor<i32>
    %4 = "stablehlo.constant"() {value = dense<0> : tensor<2x1xi32>} : () -> tensor<2x1xi32>
    %5 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %6 = "stablehlo.convert"(%5) {} : (tensor<ui32>) -> tensor<i32>
    %7 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %8 = "stablehlo.divide"(%6, %7) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %9 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %10 = "stablehlo.remainder"(%8, %9) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %11 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %12 = "stablehlo.dynamic_update_slice"(%4, %2, %10, %11) {} : (tensor<2x1xi32>, tensor<1x1xi32>, tensor<i32>, tensor<i32>) -> tensor<2x1xi32>
    %25 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %26, %27, %28 = "stablehlo.while"(%25, %12, %12) ({
    ^bb0(%13: tensor<i32>, %14: tensor<2x1xi32>, %15: tensor<2x1xi32>):
      %19 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
      %20 = "stablehlo.compare"(%13, %19) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%20) : (tensor<i1>) -> ()
    }, {
    ^bb0(%16: tensor<i32>, %17: tensor<2x1xi32>, %18: tensor<2x1xi32>):
      %21 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
      %48 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
      %49 = "stablehlo.constant"() {value = dense<0> : tensor<ui32>} : () -> tensor<ui32>
      %50 = "stablehlo.compare"(%48, %49) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      %51 = "stablehlo.constant"() {value = dense<5> : tensor<ui32>} : () -> tensor<ui32>
      %52 = "stablehlo.compare"(%48, %51) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      %53 = "stablehlo.or"(%50, %52) {} : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %54 = "stablehlo.constant"() {value = dense<1> : tensor<ui32>} : () -> tensor<ui32>
      %55 = "stablehlo.compare"(%48, %54) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      %56 = "stablehlo.or"(%53, %55) {} : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %57 = "stablehlo.constant"() {value = dense<3> : tensor<ui32>} : () -> tensor<ui32>
      %58 = "stablehlo.compare"(%48, %57) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      %59 = "stablehlo.or"(%56, %58) {} : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %62 = "stablehlo.if"(%59) ({
        %60 = "stablehlo.add"(%16, %21) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
        "stablehlo.return"(%60) : (tensor<i32>) -> ()
      }, {
        %61 = "stablehlo.add"(%16, %21) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
        "stablehlo.return"(%61) : (tensor<i32>) -> ()
      }) {} : (tensor<i1>) -> tensor<i32>
      %39 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
      %40 = "stablehlo.constant"() {value = dense<5> : tensor<ui32>} : () -> tensor<ui32>
      %41 = "stablehlo.compare"(%39, %40) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      %42 = "stablehlo.constant"() {value = dense<0> : tensor<ui32>} : () -> tensor<ui32>
      %43 = "stablehlo.compare"(%39, %42) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      %44 = "stablehlo.or"(%41, %43) {} : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %47 = "stablehlo.if"(%44) ({
        %45 = "stablehlo.collective_permute"(%17) {source_target_pairs = dense<[[2, 5], [0, 3], [4, 1], [5, 2], [1, 4], [3, 0]]> : tensor<6x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<2x1xi32>) -> tensor<2x1xi32>
        "stablehlo.return"(%45) : (tensor<2x1xi32>) -> ()
      }, {
        %46 = "stablehlo.collective_permute"(%17) {source_target_pairs = dense<[[2, 5], [0, 3], [4, 1], [5, 2], [1, 4], [3, 0]]> : tensor<6x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<2x1xi32>) -> tensor<2x1xi32>
        "stablehlo.return"(%46) : (tensor<2x1xi32>) -> ()
      }) {} : (tensor<i1>) -> tensor<2x1xi32>
      %24 = "stablehlo.or"(%18, %18) {} : (tensor<2x1xi32>, tensor<2x1xi32>) -> tensor<2x1xi32>
      "stablehlo.return"(%62, %47, %24) : (tensor<i32>, tensor<2x1xi32>, tensor<2x1xi32>) -> ()
    }) {} : (tensor<i32>, tensor<2x1xi32>, tensor<2x1xi32>) -> (tensor<i32>, tensor<2x1xi32>, tensor<2x1xi32>)
    %29 = "stablehlo.pad"(%28, %3) {edge_padding_low = array<i64: -2, 0>, edge_padding_high = array<i64: 2, 0>, interior_padding = array<i64: 0, 0>} : (tensor<2x1xi32>, tensor<i32>) -> tensor<2x1xi32>
    %30 = "stablehlo.compare"(%29, %29) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<2x1xi32>, tensor<2x1xi32>) -> tensor<2x1xi1>
    %31 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %32 = "stablehlo.convert"(%31) {} : (tensor<ui32>) -> tensor<i32>
    %33 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %34 = "stablehlo.divide"(%32, %33) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %35 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %36 = "stablehlo.remainder"(%34, %35) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %37 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %38 = "stablehlo.dynamic_slice"(%29, %36, %37) {slice_sizes = array<i64: 1, 1>} : (tensor<2x1xi32>, tensor<i32>, tensor<i32>) -> tensor<1x1xi32>
    return %30, %38 : tensor<2x1xi1>, tensor<1x1xi32>
  }
}
