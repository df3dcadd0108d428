module @m attributes {mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<2x1xi1> {mhlo.sharding = "{replicated}"}, %1: tensor<1x2xf32> {mhlo.sharding = "{devices=[1,2,3]0,1,2,3,4,5 last_tile_dim_replicate}"}, %2: tensor<2x1xi32> {mhlo.sharding = "{devices=[2,1,3]0,1,2,3,4,5 last_tile_dim_replicate}"}) -> (tensor<2x1xi1> {mhlo.sharding = "{replicated}"}, tensor<2x1xi32> {mhlo.sharding = "{devices=[2,1,3]0,1,2,3,4,5 last_tile_dim_replicate}"}) {
    %3 = "stablehlo.constant"() {value = dense<-2147483648> : tensor<i32>} : () -> tensor<i32>
    %4, %5 = "func.call"(%2, %3) {callee = @f4} : (tensor<2x1xi32>, tensor<i32>) -> (tensor<2x1xi32>, tensor<2x1xi1>)
    return %5, %4 : tensor<2x1xi1>, tensor<2x1xi32>
  }
  func.func private @f4(%6: tensor<2x1xi32>, %7: tensor<i32>) -> (tensor<2x1xi32>, tensor<2x1xi1>) {
    %8, %9 = "func.call"(%6, %7) {callee = @f8} : (tensor<2x1xi32>, tensor<i32>) -> (tensor<2x1xi32>, tensor<2x1xi1>)
    return %8, %9 : tensor<2x1xi32>, tensor<2x1xi1>
  }
  func.func private @f8(%10: tensor<2x1xi32>, %11: tensor<i32>) -> (tensor<2x1xi32>, tensor<2x1xi1>) {
    %12 = "stablehlo.pad"(%10, %11) {edge_padding_low = array<i64: -2, 0>, edge_padding_high = array<i64: 2, 0>, interior_padding = array<i64: 0, 0>} : (tensor<2x1xi32>, tensor<i32>) -> tensor<2x1xi32>
    %13 = "stablehlo.compare"(%12, %12) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<2x1xi32>, tensor<2x1xi32>) -> tensor<2x1xi1>
    return %12, %13 : tensor<2x1xi32>, tensor<2x1xi1>
  }
}
