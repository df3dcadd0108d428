module @m attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<4xi32> {mhlo.sharding = "{devices=[2]0,1}"}) -> (tensor<4xi32> {mhlo.sharding = "{devices=[2]0,1}"}) {
    %y = stablehlo.constant dense<2> : tensor<4xi32>
    return %y : tensor<4xi32>
  }
}
