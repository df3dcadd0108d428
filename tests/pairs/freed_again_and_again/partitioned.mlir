module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<1xf32> , %1: tensor<3xf32> ) -> (tensor<3xf32> , tensor<3xf32> ) {
    %2 = "stablehlo.constant"() {value = dense<0.00000000000000000e+00> : tensor<4xf32>} : () -> tensor<4xf32>
    %3 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %4 = "stablehlo.convert"(%3) {} : (tensor<ui32>) -> tensor<i32>
    %5 = "stablehlo.constant"() {value = dense<-4> : tensor<i32>} : () -> tensor<i32>
    %6 = "stablehlo.subtract"(%4, %5) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %7 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %8 = "stablehlo.remainder"(%6, %7) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %9 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %10 = "stablehlo.multiply"(%8, %9) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %11 = "stablehlo.dynamic_update_slice"(%2, %0, %10) {} : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    %12 = "stablehlo.collective_permute"(%0) {source_target_pairs = dense<[[0, 1], [2, 3], [3, 0], [1, 2]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<1xf32>) -> tensor<1xf32>
    %13 = "stablehlo.constant"() {value = dense<-3> : tensor<i32>} : () -> tensor<i32>
    %14 = "stablehlo.subtract"(%4, %13) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %15 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %16 = "stablehlo.remainder"(%14, %15) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %17 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %18 = "stablehlo.multiply"(%16, %17) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %19 = "stablehlo.dynamic_update_slice"(%11, %12, %18) {} : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    %20 = "stablehlo.collective_permute"(%12) {source_target_pairs = dense<[[0, 1], [2, 3], [1, 2], [3, 0]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<1xf32>) -> tensor<1xf32>
    %21 = "stablehlo.constant"() {value = dense<-2> : tensor<i32>} : () -> tensor<i32>
    %22 = "stablehlo.subtract"(%4, %21) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %23 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %24 = "stablehlo.remainder"(%22, %23) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %25 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %26 = "stablehlo.multiply"(%24, %25) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %27 = "stablehlo.dynamic_update_slice"(%19, %20, %26) {} : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    %28 = "stablehlo.collective_permute"(%20) {source_target_pairs = dense<[[0, 1], [2, 3], [3, 0], [1, 2]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<1xf32>) -> tensor<1xf32>
    %29 = "stablehlo.constant"() {value = dense<-1> : tensor<i32>} : () -> tensor<i32>
    %30 = "stablehlo.subtract"(%4, %29) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %31 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %32 = "stablehlo.remainder"(%30, %31) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %33 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %34 = "stablehlo.multiply"(%32, %33) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %35 = "stablehlo.dynamic_update_slice"(%27, %28, %34) {} : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    %36 = "stablehlo.slice"(%35) {start_indices = array<i64: 0>, limit_indices = array<i64: 3>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<3xf32>
    %37 = "stablehlo.add"(%36, %1) {} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %38 = "stablehlo.abs"(%37) {} : (tensor<3xf32>) -> tensor<3xf32>
    %39 = "stablehlo.rsqrt"(%38) {} : (tensor<3xf32>) -> tensor<3xf32>
    %40 = "stablehlo.constant"() {value = dense<0.00000000000000000e+00> : tensor<f32>} : () -> tensor<f32>
    %41 = "stablehlo.pad"(%39, %40) {edge_padding_low = array<i64: 0>, edge_padding_high = array<i64: 1>, interior_padding = array<i64: 0>} : (tensor<3xf32>, tensor<f32>) -> tensor<4xf32>
    %42 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %43 = "stablehlo.convert"(%42) {} : (tensor<ui32>) -> tensor<i32>
    %44 = "stablehlo.dynamic_slice"(%41, %43) {slice_sizes = array<i64: 1>} : (tensor<4xf32>, tensor<i32>) -> tensor<1xf32>
    %45 = "stablehlo.maximum"(%44, %0) {} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %46 = "stablehlo.constant"() {value = dense<0.00000000000000000e+00> : tensor<4xf32>} : () -> tensor<4xf32>
    %47 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %48 = "stablehlo.convert"(%47) {} : (tensor<ui32>) -> tensor<i32>
    %49 = "stablehlo.constant"() {value = dense<-4> : tensor<i32>} : () -> tensor<i32>
    %50 = "stablehlo.subtract"(%48, %49) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %51 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %52 = "stablehlo.remainder"(%50, %51) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %53 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %54 = "stablehlo.multiply"(%52, %53) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %55 = "stablehlo.dynamic_update_slice"(%46, %45, %54) {} : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    %56 = "stablehlo.collective_permute"(%45) {source_target_pairs = dense<[[2, 3], [1, 2], [3, 0], [0, 1]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<1xf32>) -> tensor<1xf32>
    %57 = "stablehlo.constant"() {value = dense<-3> : tensor<i32>} : () -> tensor<i32>
    %58 = "stablehlo.subtract"(%48, %57) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %59 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %60 = "stablehlo.remainder"(%58, %59) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %61 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %62 = "stablehlo.multiply"(%60, %61) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %63 = "stablehlo.dynamic_update_slice"(%55, %56, %62) {} : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    %64 = "stablehlo.collective_permute"(%56) {source_target_pairs = dense<[[1, 2], [2, 3], [0, 1], [3, 0]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<1xf32>) -> tensor<1xf32>
    %65 = "stablehlo.constant"() {value = dense<-2> : tensor<i32>} : () -> tensor<i32>
    %66 = "stablehlo.subtract"(%48, %65) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %67 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %68 = "stablehlo.remainder"(%66, %67) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %69 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %85 = "stablehlo.multiply"(%68, %69) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %81 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %82 = "stablehlo.constant"() {value = dense<0> : tensor<ui32>} : () -> tensor<ui32>
    %83 = "stablehlo.compare"(%81, %82) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %84 = "stablehlo.broadcast_in_dim"(%83) {broadcast_dimensions = array<i64>} : (tensor<i1>) -> tensor<i1>
    %86 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %87 = "stablehlo.add"(%85, %86) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %70 = "stablehlo.select"(%84, %87, %85) {} : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %71 = "stablehlo.dynamic_update_slice"(%63, %64, %70) {} : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    %72 = "stablehlo.collective_permute"(%64) {source_target_pairs = dense<[[1, 2], [2, 3], [3, 0], [0, 1]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<1xf32>) -> tensor<1xf32>
    %73 = "stablehlo.constant"() {value = dense<-1> : tensor<i32>} : () -> tensor<i32>
    %74 = "stablehlo.subtract"(%48, %73) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %75 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %76 = "stablehlo.remainder"(%74, %75) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %77 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %78 = "stablehlo.multiply"(%76, %77) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %79 = "stablehlo.dynamic_update_slice"(%71, %72, %78) {} : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    %80 = "stablehlo.slice"(%79) {start_indices = array<i64: 0>, limit_indices = array<i64: 3>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<3xf32>
    return %80, %37 : tensor<3xf32>, tensor<3xf32>
  }
}
