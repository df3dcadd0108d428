module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<0xi1> {mhlo.sharding = "{devices=[4]2,1,3,0}"}, %1: tensor<0xi32> {mhlo.sharding = "{devices=[4]2,1,3,0}"}) -> (tensor<2xi32> {mhlo.sharding = "{replicated}"}, tensor<0xi32> {mhlo.sharding = "{devices=[4]2,1,3,0}"}) {
    %8 = "stablehlo.constant"() {value = dense<1> : tensor<2xi32>} : () -> tensor<2xi32>
    return %8, %1 : tensor<2xi32>, tensor<0xi32>
  }
}
