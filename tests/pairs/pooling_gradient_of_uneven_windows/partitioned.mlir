module @jit_g attributes {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false, mhlo.use_auto_spmd_partitioning = false} {
  func.func private @region_0.0(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<i1> {
    %0 = stablehlo.compare GE, %arg0, %arg1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    return %0 : tensor<i1>
  }
  func.func private @region_1.0(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @main(%arg0: tensor<1xf32>) -> tensor<2xf32> {
    %0 = stablehlo.iota dim = 0 : tensor<5xi32>
    %c = stablehlo.constant dense<[0, 0, 1, 1]> : tensor<4xi32>
    %1 = stablehlo.partition_id : tensor<ui32>
    %2 = stablehlo.dynamic_slice %c, %1, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>
    %3 = stablehlo.reshape %2 : (tensor<1xi32>) -> tensor<i32>
    %c_0 = stablehlo.constant dense<2> : tensor<i32>
    %4 = stablehlo.multiply %3, %c_0 : tensor<i32>
    %c_1 = stablehlo.constant dense<-1> : tensor<i32>
    %5 = stablehlo.add %4, %c_1 : tensor<i32>
    %6 = stablehlo.divide %5, %c_0 : tensor<i32>
    %7 = stablehlo.multiply %6, %c_0 : tensor<i32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %9 = stablehlo.add %0, %8 : tensor<5xi32>
    %c_2 = stablehlo.constant dense<4> : tensor<i32>
    %10 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %11 = stablehlo.compare LT, %9, %10 : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %12 = "stablehlo.collective_permute"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, source_target_pairs = dense<[[0, 0], [2, 1], [1, 2], [3, 3]]> : tensor<4x2xi64>}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<1xf32>) -> tensor<1xf32>
    %13 = "stablehlo.all_gather"(%12) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 2, type = 0>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<1xf32>) -> tensor<2xf32>
    %14 = "stablehlo.collective_permute"(%13) <{channel_handle = #stablehlo.channel_handle<handle = 4, type = 0>, source_target_pairs = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<2xf32>) -> tensor<2xf32>
    %15 = stablehlo.slice %13 [0:1] : (tensor<2xf32>) -> tensor<1xf32>
    %16 = "stablehlo.collective_permute"(%15) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 0>, source_target_pairs = dense<[[2, 0], [3, 1]]> : tensor<2x2xi64>}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<1xf32>) -> tensor<1xf32>
    %17 = stablehlo.concatenate %14, %13, %16, dim = 0 : (tensor<2xf32>, tensor<2xf32>, tensor<1xf32>) -> tensor<5xf32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %18 = stablehlo.pad %17, %cst, low = [0], high = [2], interior = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<7xf32>
    %19 = stablehlo.subtract %4, %7 : tensor<i32>
    %20 = stablehlo.subtract %c_0, %19 : tensor<i32>
    %21 = stablehlo.dynamic_slice %18, %20, sizes = [5] : (tensor<7xf32>, tensor<i32>) -> tensor<5xf32>
    %22 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %23 = stablehlo.select %11, %21, %22 : tensor<5xi1>, tensor<5xf32>
    %24 = stablehlo.iota dim = 0 : tensor<2xi32>
    %25 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %26 = stablehlo.add %24, %25 : tensor<2xi32>
    %c_3 = stablehlo.constant dense<1> : tensor<i32>
    %27 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %28 = stablehlo.compare LT, %26, %27 : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<1xf32>
    %29 = mhlo.copy %cst_4 : tensor<1xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %30 = stablehlo.pad %29, %cst_5, low = [0], high = [1], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
    %c_6 = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
    %c_7 = stablehlo.constant dense<[0, 0, 1, 1]> : tensor<4xui32>
    %31 = stablehlo.dynamic_slice %c_7, %1, sizes = [1] : (tensor<4xui32>, tensor<ui32>) -> tensor<1xui32>
    %32 = stablehlo.reshape %31 : (tensor<1xui32>) -> tensor<ui32>
    %33 = stablehlo.dynamic_slice %c_6, %32, sizes = [1] : (tensor<2xi32>, tensor<ui32>) -> tensor<1xi32>
    %34 = stablehlo.reshape %33 : (tensor<1xi32>) -> tensor<i32>
    %35 = stablehlo.dynamic_slice %30, %34, sizes = [1] : (tensor<2xf32>, tensor<i32>) -> tensor<1xf32>
    %36 = "stablehlo.collective_permute"(%35) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 0>, source_target_pairs = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<1xf32>) -> tensor<1xf32>
    %37 = stablehlo.concatenate %36, %35, dim = 0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    %38 = stablehlo.pad %37, %cst_5, low = [0], high = [1], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<3xf32>
    %39 = stablehlo.subtract %3, %6 : tensor<i32>
    %40 = stablehlo.subtract %c_3, %39 : tensor<i32>
    %41 = stablehlo.dynamic_slice %38, %40, sizes = [2] : (tensor<3xf32>, tensor<i32>) -> tensor<2xf32>
    %42 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %43 = stablehlo.select %28, %41, %42 : tensor<2xi1>, tensor<2xf32>
    %44 = "stablehlo.select_and_scatter"(%23, %43, %cst_5) <{padding = dense<0> : tensor<1x2xi64>, window_dimensions = array<i64: 3>, window_strides = array<i64: 2>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %46 = stablehlo.compare GE, %arg1, %arg2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %46 : tensor<i1>
    }, {
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %46 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %46 : tensor<f32>
    }) : (tensor<5xf32>, tensor<2xf32>, tensor<f32>) -> tensor<5xf32>
    %45 = stablehlo.dynamic_slice %44, %19, sizes = [2] : (tensor<5xf32>, tensor<i32>) -> tensor<2xf32>
    return %45 : tensor<2xf32>
  }
}
