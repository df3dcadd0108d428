module @m attributes {mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<2xi8> {mhlo.sharding = "{devices=[2,3]3,1,4,2,5,0 last_tile_dim_replicate}"}, %1: tensor<2xf32> {mhlo.sharding = "{devices=[2,3]3,1,4,2,5,0 last_tile_dim_replicate}"}) -> (tensor<2xf32> {mhlo.sharding = "{devices=[6]3,1,4,2,5,0}"}, tensor<f32> {mhlo.sharding = "{replicated}"}) {
    %2 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<2xi32>
    %s3 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
    %t3 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %3, %4 = "stablehlo.reduce"(%1, %2, %s3, %t3) ({
^bb0(%a3: tensor<f32>, %i3: tensor<i32>, %b3: tensor<f32>, %j3: tensor<i32>):
%p3 = "stablehlo.compare"(%a3, %b3) {comparison_direction = #stablehlo<comparison_direction GT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
%q3 = "stablehlo.compare"(%a3, %b3) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
%r3 = "stablehlo.compare"(%i3, %j3) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
%u3 = "stablehlo.and"(%q3, %r3) : (tensor<i1>, tensor<i1>) -> tensor<i1>
%v3 = "stablehlo.or"(%p3, %u3) : (tensor<i1>, tensor<i1>) -> tensor<i1>
%c3 = "stablehlo.select"(%p3, %a3, %b3) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
%k3 = "stablehlo.select"(%v3, %i3, %j3) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
"stablehlo.return"(%c3, %k3) : (tensor<f32>, tensor<i32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<2xf32>, tensor<2xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
    %5 = "stablehlo.sort"(%1) ({
^bb0(%x5_0: tensor<f32>, %y5_0: tensor<f32>):
%z5 = "stablehlo.compare"(%x5_0, %y5_0) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
"stablehlo.return"(%z5) : (tensor<i1>) -> ()
    }) {dimension = 0 : i64, is_stable = true} : (tensor<2xf32>) -> tensor<2xf32>
    return %5, %3 : tensor<2xf32>, tensor<f32>
  }
}
