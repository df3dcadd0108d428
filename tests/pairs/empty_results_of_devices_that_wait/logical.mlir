module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<0x1xi1> {mhlo.sharding = "{devices=[8,1]0,1,4,5,2,3,6,7}"}, %1: tensor<1x0xf32> {mhlo.sharding = "{devices=[1,4,2]0,1,2,3,4,5,6,7 last_tile_dim_replicate}"}, %2: tensor<0x1xi1> {mhlo.sharding = "{devices=[4,1,2]0,2,4,6,1,3,5,7 last_tile_dim_replicate}"}) -> (tensor<0x1xf32> {mhlo.sharding = "{devices=[2,1,4]0,2,4,6,1,3,5,7 last_tile_dim_replicate}"}) {
    %5, %6 = "func.call"(%1) {callee = @f5} : (tensor<1x0xf32>) -> (tensor<0x1xf32>, tensor<0x1xf32>)
    return %6 : tensor<0x1xf32>
  }
  func.func private @f5(%9: tensor<1x0xf32>) -> (tensor<0x1xf32>, tensor<0x1xf32>) {
    %13 = "stablehlo.constant"() {value = dense<1.00000000000000000e+00> : tensor<0x1xf32>} : () -> tensor<0x1xf32>
    %14 = "stablehlo.constant"() {value = dense<1.00000000000000000e+00> : tensor<0x1xf32>} : () -> tensor<0x1xf32>
    return %13, %14 : tensor<0x1xf32>, tensor<0x1xf32>
  }
}
