module @jit_g attributes {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false, mhlo.use_auto_spmd_partitioning = false} {
  sdy.mesh @mesh = <["axis_0"=2, "axis_1"=4]>
  func.func private @region_0.0(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.minimum %arg0, %arg1 : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func private @region_1.0(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<i1> {
    %0 = stablehlo.compare LE, %arg0, %arg1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    return %0 : tensor<i1>
  }
  func.func private @region_2.0(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @main(%arg0: tensor<8x1xf32>) -> tensor<1x4xf32> {
    %0 = stablehlo.iota dim = 1 : tensor<4x1xi32>
    %c = stablehlo.constant dense<1> : tensor<4xi32>
    %c_0 = stablehlo.constant dense<[0, 1, 2, 3, 0, 1, 2, 3]> : tensor<8xi32>
    %1 = stablehlo.partition_id : tensor<ui32>
    %2 = stablehlo.dynamic_slice %c_0, %1, sizes = [1] : (tensor<8xi32>, tensor<ui32>) -> tensor<1xi32>
    %3 = stablehlo.reshape %2 : (tensor<1xi32>) -> tensor<i32>
    %4 = stablehlo.dynamic_slice %c, %3, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
    %5 = stablehlo.reshape %4 : (tensor<1xi32>) -> tensor<i32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<i32>) -> tensor<4x1xi32>
    %7 = stablehlo.compare LT, %0, %6 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi1>
    %c_1 = stablehlo.constant dense<[1, 1, 1, 0]> : tensor<4xi32>
    %8 = stablehlo.dynamic_slice %c_1, %3, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
    %9 = stablehlo.reshape %8 : (tensor<1xi32>) -> tensor<i32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i32>) -> tensor<4x1xi32>
    %11 = stablehlo.compare GE, %0, %10 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi1>
    %12 = stablehlo.and %7, %11 : tensor<4x1xi1>
    %c_2 = stablehlo.constant dense<[0, 0, 0, 0, 4, 4, 4, 4]> : tensor<8xi32>
    %13 = stablehlo.dynamic_slice %c_2, %1, sizes = [1] : (tensor<8xi32>, tensor<ui32>) -> tensor<1xi32>
    %14 = stablehlo.reshape %13 : (tensor<1xi32>) -> tensor<i32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %15 = stablehlo.subtract %14, %c_3 : tensor<i32>
    %16 = stablehlo.subtract %3, %3 : tensor<i32>
    %17 = stablehlo.dynamic_slice %arg0, %15, %16, sizes = [4, 1] : (tensor<8x1xf32>, tensor<i32>, tensor<i32>) -> tensor<4x1xf32>
    %18 = "stablehlo.collective_permute"(%17) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, source_target_pairs = dense<[[0, 3], [4, 7]]> : tensor<2x2xi64>}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<4x1xf32>) -> tensor<4x1xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %20 = stablehlo.select %12, %18, %19 : tensor<4x1xi1>, tensor<4x1xf32>
    %21 = stablehlo.reshape %20 : (tensor<4x1xf32>) -> tensor<1x4x1xf32>
    %22 = stablehlo.reshape %21 : (tensor<1x4x1xf32>) -> tensor<1x4x1x1xf32>
    %23 = "stablehlo.all_to_all"(%22) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 0>, concat_dimension = 1 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "axis_1">]>, split_count = 4 : i64, split_dimension = 1 : i64}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<1x4x1x1xf32>) -> tensor<1x4x1x1xf32>
    %24 = stablehlo.transpose %23, dims = [0, 2, 1, 3] {result_layout = dense<[3, 1, 2, 0]> : tensor<4xindex>, xla_shape = "f32[1,1,4,1]{3,1,2,0}"} : (tensor<1x4x1x1xf32>) -> tensor<1x1x4x1xf32>
    %25 = stablehlo.reshape %24 : (tensor<1x1x4x1xf32>) -> tensor<1x1x4xf32>
    %26 = stablehlo.reshape %25 : (tensor<1x1x4xf32>) -> tensor<1x4xf32>
    %27 = "stablehlo.collective_permute"(%26) <{channel_handle = #stablehlo.channel_handle<handle = 7, type = 0>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7]]> : tensor<7x2xi64>}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %28 = "stablehlo.collective_permute"(%26) <{channel_handle = #stablehlo.channel_handle<handle = 8, type = 0>, source_target_pairs = dense<[[1, 0], [2, 1], [3, 2], [4, 3], [5, 4], [6, 5], [7, 6]]> : tensor<7x2xi64>}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %29 = stablehlo.concatenate %27, %26, %28, dim = 0 : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
    %c_4 = stablehlo.constant dense<1> : tensor<i32>
    %c_5 = stablehlo.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : tensor<8xi32>
    %30 = stablehlo.dynamic_slice %c_5, %1, sizes = [1] : (tensor<8xi32>, tensor<ui32>) -> tensor<1xi32>
    %31 = stablehlo.reshape %30 : (tensor<1xi32>) -> tensor<i32>
    %c_6 = stablehlo.constant dense<2> : tensor<i32>
    %32 = stablehlo.divide %31, %c_6 : tensor<i32>
    %33 = stablehlo.multiply %32, %c_6 : tensor<i32>
    %34 = stablehlo.subtract %31, %33 : tensor<i32>
    %35 = stablehlo.subtract %c_4, %34 : tensor<i32>
    %36 = stablehlo.dynamic_slice %29, %35, %c_3, sizes = [2, 4] : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
    %37 = stablehlo.iota dim = 0 : tensor<1x4xi32>
    %c_7 = stablehlo.constant dense<1> : tensor<8xi32>
    %38 = stablehlo.dynamic_slice %c_7, %31, sizes = [1] : (tensor<8xi32>, tensor<i32>) -> tensor<1xi32>
    %39 = stablehlo.reshape %38 : (tensor<1xi32>) -> tensor<i32>
    %40 = stablehlo.broadcast_in_dim %39, dims = [] : (tensor<i32>) -> tensor<1x4xi32>
    %41 = stablehlo.compare LT, %37, %40 : (tensor<1x4xi32>, tensor<1x4xi32>) -> tensor<1x4xi1>
    %c_8 = stablehlo.constant dense<[0, 1, 1, 2, 1, 2, 1, 2]> : tensor<8xi32>
    %42 = stablehlo.dynamic_slice %c_8, %31, sizes = [1] : (tensor<8xi32>, tensor<i32>) -> tensor<1xi32>
    %43 = stablehlo.reshape %42 : (tensor<1xi32>) -> tensor<i32>
    %44 = stablehlo.compare EQ, %43, %c_6 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %45 = stablehlo.broadcast_in_dim %44, dims = [] : (tensor<i1>) -> tensor<1x4xi1>
    %46 = stablehlo.iota dim = 0 : tensor<2x4xi32>
    %c_9 = stablehlo.constant dense<[2, 2, 2, 2, 0, -2, -4, -6]> : tensor<8xi32>
    %47 = stablehlo.dynamic_slice %c_9, %31, sizes = [1] : (tensor<8xi32>, tensor<i32>) -> tensor<1xi32>
    %48 = stablehlo.reshape %47 : (tensor<1xi32>) -> tensor<i32>
    %49 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<i32>) -> tensor<2x4xi32>
    %50 = stablehlo.compare LT, %46, %49 : (tensor<2x4xi32>, tensor<2x4xi32>) -> tensor<2x4xi1>
    %c_10 = stablehlo.constant dense<[0, 0, 0, 0, 2, 2, 2, 2]> : tensor<8xi32>
    %51 = stablehlo.dynamic_slice %c_10, %31, sizes = [1] : (tensor<8xi32>, tensor<i32>) -> tensor<1xi32>
    %52 = stablehlo.reshape %51 : (tensor<1xi32>) -> tensor<i32>
    %53 = stablehlo.broadcast_in_dim %52, dims = [] : (tensor<i32>) -> tensor<2x4xi32>
    %54 = stablehlo.compare GE, %46, %53 : (tensor<2x4xi32>, tensor<2x4xi32>) -> tensor<2x4xi1>
    %55 = stablehlo.and %50, %54 : tensor<2x4xi1>
    %c_11 = stablehlo.constant dense<[0, 1, 1, 1, 2, 2, 2, 2]> : tensor<8xi32>
    %56 = stablehlo.dynamic_slice %c_11, %31, sizes = [1] : (tensor<8xi32>, tensor<i32>) -> tensor<1xi32>
    %57 = stablehlo.reshape %56 : (tensor<1xi32>) -> tensor<i32>
    %58 = stablehlo.compare EQ, %57, %c_4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %59 = stablehlo.broadcast_in_dim %58, dims = [] : (tensor<i1>) -> tensor<1x4xi1>
    %60 = "stablehlo.collective_permute"(%26) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 0>, source_target_pairs = dense<[[1, 0], [2, 1], [4, 2], [6, 3]]> : tensor<4x2xi64>}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %61 = stablehlo.select %59, %60, %26 : tensor<1x4xi1>, tensor<1x4xf32>
    %62 = "stablehlo.collective_permute"(%26) <{channel_handle = #stablehlo.channel_handle<handle = 4, type = 0>, source_target_pairs = dense<[[3, 1], [5, 2], [7, 3]]> : tensor<3x2xi64>}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %63 = stablehlo.select %59, %62, %60 : tensor<1x4xi1>, tensor<1x4xf32>
    %64 = stablehlo.concatenate %61, %63, dim = 0 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
    %cst_12 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %65 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
    %66 = stablehlo.select %55, %64, %65 : tensor<2x4xi1>, tensor<2x4xf32>
    %67 = "stablehlo.reduce_window"(%66, %cst_12) <{base_dilations = array<i64: 1, 1>, padding = dense<0> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %83 = stablehlo.minimum %arg1, %arg2 : tensor<f32>
      stablehlo.return %83 : tensor<f32>
    }) : (tensor<2x4xf32>, tensor<f32>) -> tensor<1x4xf32>
    %68 = mhlo.copy %67 : tensor<1x4xf32>
    %cst_13 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %69 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<1x4xf32>
    %70 = stablehlo.multiply %68, %69 : tensor<1x4xf32>
    %71 = mhlo.copy %70 : tensor<1x4xf32>
    %72 = "stablehlo.collective_permute"(%71) <{channel_handle = #stablehlo.channel_handle<handle = 6, type = 0>, source_target_pairs = dense<[[1, 3], [2, 5], [3, 7]]> : tensor<3x2xi64>}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %73 = stablehlo.compare EQ, %43, %c_4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %74 = stablehlo.broadcast_in_dim %73, dims = [] : (tensor<i1>) -> tensor<1x4xi1>
    %75 = "stablehlo.collective_permute"(%71) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 0>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 4], [3, 6]]> : tensor<4x2xi64>}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %76 = stablehlo.select %74, %75, %71 : tensor<1x4xi1>, tensor<1x4xf32>
    %77 = stablehlo.select %45, %72, %76 : tensor<1x4xi1>, tensor<1x4xf32>
    %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %78 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<1x4xf32>
    %79 = stablehlo.select %41, %77, %78 : tensor<1x4xi1>, tensor<1x4xf32>
    %80 = "stablehlo.select_and_scatter"(%36, %79, %cst_14) <{padding = dense<0> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %83 = stablehlo.compare LE, %arg1, %arg2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %83 : tensor<i1>
    }, {
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %83 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %83 : tensor<f32>
    }) : (tensor<2x4xf32>, tensor<1x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %81 = stablehlo.dynamic_slice %80, %34, %c_3, sizes = [1, 4] : (tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %82 = stablehlo.pad %81, %cst_14, low = [0, -3], high = [0, 3], interior = [0, 0] : (tensor<1x4xf32>, tensor<f32>) -> tensor<1x4xf32>
    return %82 : tensor<1x4xf32>
  }
}
