module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<3xf32> {mhlo.sharding = "{devices=[4]0,1,2,3}"}, %1: tensor<3xf32> {mhlo.sharding = "{replicated}"}) -> (tensor<3xf32> {mhlo.sharding = "{replicated}"}, tensor<3xf32> {mhlo.sharding = "{replicated}"}) {
    %2 = "stablehlo.add"(%0, %1) {} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %3 = "stablehlo.abs"(%2) {} : (tensor<3xf32>) -> tensor<3xf32>
    %4 = "stablehlo.rsqrt"(%3) {} : (tensor<3xf32>) -> tensor<3xf32>
    %5 = "stablehlo.maximum"(%4, %0) {} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    return %5, %2 : tensor<3xf32>, tensor<3xf32>
  }
}
