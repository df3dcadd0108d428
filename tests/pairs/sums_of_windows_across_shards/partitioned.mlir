module @jit_g attributes {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false, mhlo.use_auto_spmd_partitioning = false} {
  func.func private @region_0.0(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func private @region_1.0(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @main(%arg0: tensor<2x4xf32>) -> tensor<2x4xf32> {
    %0 = stablehlo.iota dim = 0 : tensor<3x2xi32>
    %c = stablehlo.constant dense<[0, 1, 2]> : tensor<3xi32>
    %1 = stablehlo.partition_id : tensor<ui32>
    %2 = stablehlo.dynamic_slice %c, %1, sizes = [1] : (tensor<3xi32>, tensor<ui32>) -> tensor<1xi32>
    %3 = stablehlo.reshape %2 : (tensor<1xi32>) -> tensor<i32>
    %c_0 = stablehlo.constant dense<3> : tensor<i32>
    %4 = stablehlo.multiply %3, %c_0 : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i32>) -> tensor<3x2xi32>
    %6 = stablehlo.add %0, %5 : tensor<3x2xi32>
    %c_1 = stablehlo.constant dense<2> : tensor<i32>
    %7 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<3x2xi32>
    %8 = stablehlo.compare GE, %6, %7 : (tensor<3x2xi32>, tensor<3x2xi32>) -> tensor<3x2xi1>
    %c_2 = stablehlo.constant dense<6> : tensor<i32>
    %9 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<3x2xi32>
    %10 = stablehlo.compare LT, %6, %9 : (tensor<3x2xi32>, tensor<3x2xi32>) -> tensor<3x2xi1>
    %11 = stablehlo.and %8, %10 : tensor<3x2xi1>
    %12 = stablehlo.iota dim = 0 : tensor<4x4xi32>
    %13 = stablehlo.multiply %3, %c_1 : tensor<i32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<i32>) -> tensor<4x4xi32>
    %15 = stablehlo.add %12, %14 : tensor<4x4xi32>
    %16 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<4x4xi32>
    %17 = stablehlo.compare LT, %15, %16 : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi1>
    %18 = "stablehlo.collective_permute"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, source_target_pairs = dense<[[1, 0], [2, 1]]> : tensor<2x2xi64>}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %19 = stablehlo.concatenate %arg0, %18, dim = 0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
    %21 = stablehlo.select %17, %19, %20 : tensor<4x4xi1>, tensor<4x4xf32>
    %22 = "stablehlo.reduce_window"(%21, %cst) <{base_dilations = array<i64: 1, 1>, padding = dense<0> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %42 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %42 : tensor<f32>
    }) : (tensor<4x4xf32>, tensor<f32>) -> tensor<2x2xf32>
    %cst_3 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %24 = stablehlo.multiply %22, %23 : tensor<2x2xf32>
    %25 = stablehlo.slice %24 [1:2, 0:2] : (tensor<2x2xf32>) -> tensor<1x2xf32>
    %26 = "stablehlo.collective_permute"(%25) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 0>, source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<1x2xf32>) -> tensor<1x2xf32>
    %27 = stablehlo.concatenate %26, %24, dim = 0 : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
    %28 = stablehlo.pad %27, %cst, low = [1, 0], high = [1, 0], interior = [0, 0] : (tensor<3x2xf32>, tensor<f32>) -> tensor<5x2xf32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %29 = stablehlo.dynamic_slice %28, %3, %c_4, sizes = [3, 2] : (tensor<5x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
    %30 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x2xf32>
    %31 = stablehlo.select %11, %29, %30 : tensor<3x2xi1>, tensor<3x2xf32>
    %32 = stablehlo.pad %31, %cst, low = [0, 1], high = [0, 1], interior = [0, 1] : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x5xf32>
    %33 = stablehlo.slice %32 [1:3, 0:5] : (tensor<3x5xf32>) -> tensor<2x5xf32>
    %34 = "stablehlo.collective_permute"(%33) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 0>, source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<2x5xf32>) -> tensor<2x5xf32>
    %35 = stablehlo.slice %32 [0:1, 0:5] : (tensor<3x5xf32>) -> tensor<1x5xf32>
    %36 = "stablehlo.collective_permute"(%35) <{channel_handle = #stablehlo.channel_handle<handle = 4, type = 0>, source_target_pairs = dense<[[1, 0], [2, 1]]> : tensor<2x2xi64>}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<1x5xf32>) -> tensor<1x5xf32>
    %37 = stablehlo.concatenate %34, %32, %36, dim = 0 : (tensor<2x5xf32>, tensor<3x5xf32>, tensor<1x5xf32>) -> tensor<6x5xf32>
    %c_5 = stablehlo.constant dense<-1> : tensor<i32>
    %38 = stablehlo.multiply %3, %c_5 : tensor<i32>
    %39 = stablehlo.add %38, %c_1 : tensor<i32>
    %40 = stablehlo.dynamic_slice %37, %39, %c_4, sizes = [4, 5] : (tensor<6x5xf32>, tensor<i32>, tensor<i32>) -> tensor<4x5xf32>
    %41 = "stablehlo.reduce_window"(%40, %cst) <{base_dilations = array<i64: 1, 1>, padding = dense<0> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %42 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %42 : tensor<f32>
    }) : (tensor<4x5xf32>, tensor<f32>) -> tensor<2x4xf32>
    return %41 : tensor<2x4xf32>
  }
}
