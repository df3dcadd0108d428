module @jit_g attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 4 : i64}, {name = "y", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<10x2x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}, {}]>}) -> (tensor<10x2x12xf32> {jax.result_info = "result", sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}, {}]>}) {
    %0 = stablehlo.reshape %arg0 : (tensor<10x2x12xf32>) -> tensor<1x10x2x12xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"x", "y"}, {}, {}]> : tensor<1x10x2x12xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.reduce(%1 init: %cst) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<1x10x2x12xf32>, tensor<f32>) -> tensor<f32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x10x2x12xf32>
    %4 = sdy.sharding_constraint %3 <@mesh, [{}, {"x", "y"}, {}, {}]> : tensor<1x10x2x12xf32>
    %5 = stablehlo.reshape %4 : (tensor<1x10x2x12xf32>) -> tensor<10x2x12xf32>
    return %5 : tensor<10x2x12xf32>
  }
}
