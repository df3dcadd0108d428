module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<8xui8> {mhlo.sharding = "{devices=[2,2]0,2,1,3 last_tile_dim_replicate}"}, %1: tensor<8xi32> {mhlo.sharding = "{devices=[2,2]0,2,1,3 last_tile_dim_replicate}"}, %2: tensor<8xi32> {mhlo.sharding = "{devices=[2,2]0,1,2,3 last_tile_dim_replicate}"}) -> (tensor<8xui8> {mhlo.sharding = "{replicated}"}, tensor<8xi32> {mhlo.sharding = "{devices=[4]0,2,1,3}"}) {
    %3 = "stablehlo.xor"(%1, %1) {} : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %4 = "stablehlo.constant"() {value = dense<2> : tensor<8xi32>} : () -> tensor<8xi32>
    %8 = "stablehlo.constant"() {value = dense<4> : tensor<8xi32>} : () -> tensor<8xi32>
    %9 = "stablehlo.add"(%3, %8) {} : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %10 = "stablehlo.divide"(%9, %4) {} : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %11 = "stablehlo.constant"() {value = dense<2> : tensor<8xi32>} : () -> tensor<8xi32>
    %12 = "stablehlo.subtract"(%10, %11) {} : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %s6 = "stablehlo.constant"() {value = dense<0> : tensor<ui8>} : () -> tensor<ui8>
    %6 = "stablehlo.reduce"(%0, %s6) ({
^bb0(%x6: tensor<ui8>, %y6: tensor<ui8>):
%z6 = "stablehlo.add"(%x6, %y6) : (tensor<ui8>, tensor<ui8>) -> tensor<ui8>
"stablehlo.return"(%z6) : (tensor<ui8>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<8xui8>, tensor<ui8>) -> tensor<ui8>
    %7 = "stablehlo.broadcast_in_dim"(%6) {broadcast_dimensions = array<i64>} : (tensor<ui8>) -> tensor<8xui8>
    return %7, %12 : tensor<8xui8>, tensor<8xi32>
  }
}
