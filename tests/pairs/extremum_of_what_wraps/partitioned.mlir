module @m attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<2xi32>) -> tensor<2xi32> {
    %one = stablehlo.constant dense<1> : tensor<2xi32>
    %two = stablehlo.constant dense<2> : tensor<2xi32>
    %least = stablehlo.maximum %x, %one : tensor<2xi32>
    %next = stablehlo.add %least, %one : tensor<2xi32>
    %cut = stablehlo.minimum %next, %two : tensor<2xi32>
    %y = stablehlo.minimum %cut, %cut : tensor<2xi32>
    return %y : tensor<2xi32>
  }
}
