module @m attributes {mhlo.num_partitions = 3 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<0xf32> , %1: tensor<0xf32> ) -> (tensor<0xi32> , tensor<0xi32> ) {
    %2 = "stablehlo.constant"() {value = dense<0.00000000000000000e+00> : tensor<f32>} : () -> tensor<f32>
    %3 = "stablehlo.constant"() {value = dense<5.00000000000000000e+00> : tensor<f32>} : () -> tensor<f32>
    %4 = "stablehlo.clamp"(%2, %1, %3) {} : (tensor<f32>, tensor<0xf32>, tensor<f32>) -> tensor<0xf32>
    %5 = "stablehlo.convert"(%4) {} : (tensor<0xf32>) -> tensor<0xi32>
    %6 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %28, %29 = "stablehlo.while"(%6, %5) ({
    ^bb0(%7: tensor<i32>, %8: tensor<0xi32>):
      %9 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
      %10 = "stablehlo.compare"(%7, %9) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%10) : (tensor<i1>) -> ()
    }, {
    ^bb0(%11: tensor<i32>, %12: tensor<0xi32>):
      %13 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
      %14 = "stablehlo.add"(%11, %13) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %26 = "stablehlo.constant"() {value = dense<0> : tensor<0xi32>} : () -> tensor<0xi32>
      %27 = "stablehlo.add"(%12, %26) {} : (tensor<0xi32>, tensor<0xi32>) -> tensor<0xi32>
      "stablehlo.return"(%14, %27) : (tensor<i32>, tensor<0xi32>) -> ()
    }) {} : (tensor<i32>, tensor<0xi32>) -> (tensor<i32>, tensor<0xi32>)
    %32 = "stablehlo.constant"() {value = dense<0> : tensor<0xi32>} : () -> tensor<0xi32>
    return %32, %29 : tensor<0xi32>, tensor<0xi32>
  }
}
