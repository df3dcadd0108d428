module @jit_g attributes {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false, mhlo.use_auto_spmd_partitioning = false} {
  func.func @main(%arg0: tensor<5x2x12xf32>) -> tensor<5x2x12xf32> {
    %c = stablehlo.constant dense<[0, 0, 0, 0, 1, 1, 1, 2]> : tensor<8xi32>
    %c_0 = stablehlo.constant dense<[0, 4, 1, 5, 2, 6, 3, 7]> : tensor<8xi32>
    %0 = stablehlo.partition_id : tensor<ui32>
    %1 = stablehlo.dynamic_slice %c_0, %0, sizes = [1] : (tensor<8xi32>, tensor<ui32>) -> tensor<1xi32>
    %2 = stablehlo.reshape %1 : (tensor<1xi32>) -> tensor<i32>
    %3 = stablehlo.dynamic_slice %c, %2, sizes = [1] : (tensor<8xi32>, tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.reshape %3 : (tensor<1xi32>) -> tensor<i32>
    %c_1 = stablehlo.constant dense<1> : tensor<i32>
    %5 = stablehlo.compare EQ, %4, %c_1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<i1>) -> tensor<1x2x2x12xi1>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x2x2x12xf32>
    %8 = mhlo.copy %7 : tensor<1x2x2x12xf32>
    %9 = mhlo.copy %8 : tensor<1x2x2x12xf32>
    %10 = stablehlo.slice %9 [0:1, 1:2, 0:2, 0:12] : (tensor<1x2x2x12xf32>) -> tensor<1x1x2x12xf32>
    %11 = "stablehlo.collective_permute"(%10) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, source_target_pairs = dense<[[4, 1], [6, 3], [1, 5]]> : tensor<3x2xi64>}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<1x1x2x12xf32>) -> tensor<1x1x2x12xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %12 = stablehlo.pad %11, %cst_2, low = [0, 1, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<1x1x2x12xf32>, tensor<f32>) -> tensor<1x2x2x12xf32>
    %13 = stablehlo.select %6, %12, %9 : tensor<1x2x2x12xi1>, tensor<1x2x2x12xf32>
    %14 = stablehlo.slice %9 [0:1, 0:1, 0:2, 0:12] : (tensor<1x2x2x12xf32>) -> tensor<1x1x2x12xf32>
    %15 = "stablehlo.collective_permute"(%14) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 0>, source_target_pairs = dense<[[6, 1], [1, 3]]> : tensor<2x2xi64>}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<1x1x2x12xf32>) -> tensor<1x1x2x12xf32>
    %16 = stablehlo.concatenate %13, %15, dim = 1 : (tensor<1x2x2x12xf32>, tensor<1x1x2x12xf32>) -> tensor<1x3x2x12xf32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %c_4 = stablehlo.constant dense<[0, 0, 0, 0, 1, 1, 1, 1]> : tensor<8xi32>
    %17 = stablehlo.dynamic_slice %c_4, %2, sizes = [1] : (tensor<8xi32>, tensor<i32>) -> tensor<1xi32>
    %18 = stablehlo.reshape %17 : (tensor<1xi32>) -> tensor<i32>
    %19 = stablehlo.dynamic_slice %16, %c_3, %18, %c_3, %c_3, sizes = [1, 2, 2, 12] : (tensor<1x3x2x12xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x2x12xf32>
    %20 = "stablehlo.all_gather"(%19) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 3, type = 0>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> {mhlo.frontend_attributes = {is_spmd_generated = "true"}} : (tensor<1x2x2x12xf32>) -> tensor<1x8x2x12xf32>
    %21 = stablehlo.slice %20 [0:1, 0:5, 0:2, 0:12] : (tensor<1x8x2x12xf32>) -> tensor<1x5x2x12xf32>
    %22 = stablehlo.reshape %21 : (tensor<1x5x2x12xf32>) -> tensor<5x2x12xf32>
    return %22 : tensor<5x2x12xf32>
  }
}
