module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<0x2x2xi32> , %1: tensor<0x4x2xf32> ) -> (tensor<0x2x2xf32> , tensor<0x4x2xi32> ) {
    %2 = "stablehlo.constant"() {value = dense<0.00000000000000000e+00> : tensor<0x2x2xf32>} : () -> tensor<0x2x2xf32>
    %3 = "stablehlo.constant"() {value = dense<0> : tensor<0x4x2xi32>} : () -> tensor<0x4x2xi32>
    return %2, %3 : tensor<0x2x2xf32>, tensor<0x4x2xi32>
  }
}
