module @m attributes {mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<2xf32> {mhlo.sharding = "{devices=[2,3]5,4,3,1,0,2 last_tile_dim_replicate}"}, %1: tensor<2xf32> {mhlo.sharding = "{replicated}"}, %2: tensor<2xf32> {mhlo.sharding = "{devices=[2,3]5,4,3,1,0,2 last_tile_dim_replicate}"}) -> (tensor<2xf32> {mhlo.sharding = "{devices=[2,3]5,4,3,1,0,2 last_tile_dim_replicate}"}, tensor<2xf32> {mhlo.sharding = "{replicated}"}) {
    %3 = "stablehlo.multiply"(%2, %1) {} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %4 = "stablehlo.minimum"(%3, %3) {} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %5 = "stablehlo.subtract"(%4, %2) {} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %6 = "stablehlo.compare"(%4, %4) {comparison_direction = #stablehlo<comparison_direction LE>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
    %7 = "stablehlo.select"(%6, %5, %5) {} : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %8 = "stablehlo.compare"(%7, %7) {comparison_direction = #stablehlo<comparison_direction GE>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
    %9 = "stablehlo.select"(%8, %7, %7) {} : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %9, %7 : tensor<2xf32>, tensor<2xf32>
  }
}
