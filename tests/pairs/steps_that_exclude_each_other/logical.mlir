module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<4x6xi32> {mhlo.sharding = "{devices=[2,2]1,3,2,0}"}) -> (tensor<4x6xi32> {mhlo.sharding = "{devices=[2,2]1,2,3,0}"}) {
    %1 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %16, %17 = "stablehlo.while"(%1, %0) ({
    ^bb0(%2: tensor<i32>, %3: tensor<4x6xi32>):
      %4 = "stablehlo.constant"() {value = dense<6> : tensor<i32>} : () -> tensor<i32>
      %5 = "stablehlo.compare"(%2, %4) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%5) : (tensor<i1>) -> ()
    }, {
    ^bb0(%6: tensor<i32>, %7: tensor<4x6xi32>):
      %8 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
      %9 = "stablehlo.add"(%6, %8) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %10 = "stablehlo.slice"(%0) {start_indices = array<i64: 1, 3>, limit_indices = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<4x6xi32>) -> tensor<1x1xi32>
      %11 = "stablehlo.reshape"(%10) {} : (tensor<1x1xi32>) -> tensor<i32>
      %12 = "stablehlo.constant"() {value = dense<-1> : tensor<i32>} : () -> tensor<i32>
      %13 = "stablehlo.constant"() {value = dense<10> : tensor<1x2xi32>} : () -> tensor<1x2xi32>
      %14 = "stablehlo.dynamic_update_slice"(%7, %13, %11, %12) {} : (tensor<4x6xi32>, tensor<1x2xi32>, tensor<i32>, tensor<i32>) -> tensor<4x6xi32>
      "stablehlo.return"(%9, %14) : (tensor<i32>, tensor<4x6xi32>) -> ()
    }) {} : (tensor<i32>, tensor<4x6xi32>) -> (tensor<i32>, tensor<4x6xi32>)
    return %17 : tensor<4x6xi32>
  }
}
