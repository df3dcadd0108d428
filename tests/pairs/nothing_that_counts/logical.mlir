module @m attributes {mhlo.num_partitions = 3 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<0xf32> {mhlo.sharding = "{devices=[3]0,1,2}"}, %1: tensor<0xf32> {mhlo.sharding = "{replicated}"}) -> (tensor<0xi32> {mhlo.sharding = "{devices=[3]0,1,2}"}, tensor<0xi32> {mhlo.sharding = "{replicated}"}) {
    %2 = "stablehlo.constant"() {value = dense<0.00000000000000000e+00> : tensor<f32>} : () -> tensor<f32>
    %3 = "stablehlo.constant"() {value = dense<5.00000000000000000e+00> : tensor<f32>} : () -> tensor<f32>
    %4 = "stablehlo.clamp"(%2, %1, %3) {} : (tensor<f32>, tensor<0xf32>, tensor<f32>) -> tensor<0xf32>
    %5 = "stablehlo.convert"(%4) {} : (tensor<0xf32>) -> tensor<0xi32>
    %6 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %20, %21 = "stablehlo.while"(%6, %5) ({
    ^bb0(%7: tensor<i32>, %8: tensor<0xi32>):
      %9 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
      %24 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
      %25 = "stablehlo.add"(%7, %24) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %26 = "stablehlo.compare"(%25, %9) {comparison_direction = #stablehlo<comparison_direction LE>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%26) : (tensor<i1>) -> ()
    }, {
    ^bb0(%11: tensor<i32>, %12: tensor<0xi32>):
      %13 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
      %14 = "stablehlo.add"(%11, %13) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %15 = "stablehlo.convert"(%11) {} : (tensor<i32>) -> tensor<i32>
      %16 = "stablehlo.broadcast_in_dim"(%15) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<0xi32>
      %17 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<0xi32>
      %18 = "stablehlo.xor"(%16, %17) {} : (tensor<0xi32>, tensor<0xi32>) -> tensor<0xi32>
      %19 = "stablehlo.add"(%12, %18) {} : (tensor<0xi32>, tensor<0xi32>) -> tensor<0xi32>
      "stablehlo.return"(%14, %19) : (tensor<i32>, tensor<0xi32>) -> ()
    }) {} : (tensor<i32>, tensor<0xi32>) -> (tensor<i32>, tensor<0xi32>)
    %22 = "stablehlo.constant"() {value = dense<-3> : tensor<i32>} : () -> tensor<i32>
    %23 = "stablehlo.pad"(%21, %22) {edge_padding_low = array<i64: 0>, edge_padding_high = array<i64: 0>, interior_padding = array<i64: 1>} : (tensor<0xi32>, tensor<i32>) -> tensor<0xi32>
    return %23, %21 : tensor<0xi32>, tensor<0xi32>
  }
}
