module @m attributes {mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<4xi1> {mhlo.sharding = "{devices=[2,3]0,1,2,3,4,5 last_tile_dim_replicate}"}) -> (tensor<4xi1> {mhlo.sharding = "{devices=[2,3]0,1,2,3,4,5 last_tile_dim_replicate}"}, tensor<4xi1> {mhlo.sharding = "{replicated}"}) {
    %1 = "stablehlo.constant"() {value = dense<8> : tensor<4xi32>} : () -> tensor<4xi32>
    %2 = "stablehlo.constant"() {value = dense<-3> : tensor<4xi32>} : () -> tensor<4xi32>
    %3 = "stablehlo.compare"(%1, %2) {comparison_direction = #stablehlo<comparison_direction GT>} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %4 = "stablehlo.convert"(%0) {} : (tensor<4xi1>) -> tensor<4xi8>
    %5 = "stablehlo.convert"(%0) {} : (tensor<4xi1>) -> tensor<4xi8>
    %6 = "stablehlo.select"(%3, %4, %5) {} : (tensor<4xi1>, tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    %12 = "stablehlo.reshape"(%6) {} : (tensor<4xi8>) -> tensor<4xi8>
    %13 = "stablehlo.reshape"(%6) {} : (tensor<4xi8>) -> tensor<4xi8>
    %14 = "stablehlo.add"(%12, %13) {} : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    %15 = "stablehlo.reshape"(%14) {} : (tensor<4xi8>) -> tensor<4xi8>
    %8 = "stablehlo.compare"(%15, %6) {comparison_direction = #stablehlo<comparison_direction GE>} : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi1>
    %9 = "stablehlo.compare"(%15, %15) {comparison_direction = #stablehlo<comparison_direction LE>} : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi1>
    %10 = "stablehlo.select"(%9, %0, %8) {} : (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %11 = "stablehlo.compare"(%6, %15) {comparison_direction = #stablehlo<comparison_direction GE>} : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi1>
    return %11, %10 : tensor<4xi1>, tensor<4xi1>
  }
}
