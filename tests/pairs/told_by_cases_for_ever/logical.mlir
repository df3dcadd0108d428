module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<4x1xi32> {mhlo.sharding = "{devices=[4,1]0,1,2,3}"}, %1: tensor<4x1xi32> {mhlo.sharding = "{replicated}"}) -> (tensor<4x1xi32> {mhlo.sharding = "{replicated}"}, tensor<4x1xi32> {mhlo.sharding = "{replicated}"}) {
    %2 = "stablehlo.slice"(%0) {start_indices = array<i64: 3, 0>, limit_indices = array<i64: 4, 1>, strides = array<i64: 1, 1>} : (tensor<4x1xi32>) -> tensor<1x1xi32>
    %3 = "stablehlo.constant"() {value = dense<16> : tensor<3x1xi32>} : () -> tensor<3x1xi32>
    %4 = "stablehlo.concatenate"(%2, %3) {dimension = 0 : i64} : (tensor<1x1xi32>, tensor<3x1xi32>) -> tensor<4x1xi32>
    %5 = "stablehlo.add"(%0, %4) {} : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi32>
    %6 = "stablehlo.maximum"(%5, %5) {} : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi32>
    %7 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %8 = "stablehlo.pad"(%1, %7) {edge_padding_low = array<i64: -1, 0>, edge_padding_high = array<i64: 1, 0>, interior_padding = array<i64: 0, 0>} : (tensor<4x1xi32>, tensor<i32>) -> tensor<4x1xi32>
    %9 = "stablehlo.subtract"(%1, %8) {} : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi32>
    return %9, %6 : tensor<4x1xi32>, tensor<4x1xi32>
  }
}
