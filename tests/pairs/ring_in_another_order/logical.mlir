module @m attributes {mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<3xf32> {mhlo.sharding = "{devices=[3,2]4,1,2,3,5,0 last_tile_dim_replicate}"}, %1: tensor<3xf32> {mhlo.sharding = "{devices=[6]4,1,2,3,5,0}"}) -> (tensor<3xf32> {mhlo.sharding = "{replicated}"}) {
    %4 = "stablehlo.subtract"(%1, %1) {} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %5 = "stablehlo.constant"() {value = dense<0.00000000000000000e+00> : tensor<3xf32>} : () -> tensor<3xf32>
    %6 = "stablehlo.maximum"(%4, %5) {} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %7 = "stablehlo.add"(%1, %6) {} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %3 = "stablehlo.subtract"(%7, %0) {} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    return %3 : tensor<3xf32>
  }
}
