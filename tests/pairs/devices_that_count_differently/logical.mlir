module @m attributes {mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<4x6xi32> {mhlo.sharding = "{devices=[1,2,3]0,1,2,3,4,5 last_tile_dim_replicate}"}, %1: tensor<4x6xi32> {mhlo.sharding = "{devices=[1,2,3]0,1,2,3,4,5 last_tile_dim_replicate}"}, %2: tensor<6x4xi32> {mhlo.sharding = "{devices=[2,1,3]0,1,2,3,4,5 last_tile_dim_replicate}"}) -> (tensor<2x4xi32> {mhlo.sharding = "{devices=[2,1,3]0,1,2,3,4,5 last_tile_dim_replicate}"}, tensor<5x4xi32> {mhlo.sharding = "{replicated}"}) {
    %3 = "stablehlo.slice"(%2) {start_indices = array<i64: 0, 1>, limit_indices = array<i64: 1, 2>, strides = array<i64: 1, 1>} : (tensor<6x4xi32>) -> tensor<1x1xi32>
    %4 = "stablehlo.reshape"(%3) {} : (tensor<1x1xi32>) -> tensor<i32>
    %5 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %6 = "stablehlo.dynamic_slice"(%2, %5, %4) {slice_sizes = array<i64: 5, 4>} : (tensor<6x4xi32>, tensor<i32>, tensor<i32>) -> tensor<5x4xi32>
    %7 = "stablehlo.minimum"(%6, %6) {} : (tensor<5x4xi32>, tensor<5x4xi32>) -> tensor<5x4xi32>
    %8 = "stablehlo.constant"() {value = dense<[4, 2]> : tensor<2xi32>} : () -> tensor<2xi32>
    %9 = "stablehlo.reshape"(%8) {} : (tensor<2xi32>) -> tensor<2x1xi32>
    %10 = "stablehlo.reshape"(%9) {} : (tensor<2x1xi32>) -> tensor<2x1xi32>
    %16 = "stablehlo.reshape"(%10) {} : (tensor<2x1xi32>) -> tensor<2xi32>
    %17 = "stablehlo.broadcast_in_dim"(%16) {broadcast_dimensions = array<i64: 0>} : (tensor<2xi32>) -> tensor<2x5xi32>
    %18 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<2x5xi32>
    %19 = "stablehlo.compare"(%17, %18) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<2x5xi32>, tensor<2x5xi32>) -> tensor<2x5xi1>
    %20 = "stablehlo.convert"(%19) {} : (tensor<2x5xi1>) -> tensor<2x5xi32>
    %21 = "stablehlo.dot_general"(%20, %7) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<2x5xi32>, tensor<5x4xi32>) -> tensor<2x4xi32>
    %22 = "stablehlo.reshape"(%21) {} : (tensor<2x4xi32>) -> tensor<2x4xi32>
    %12 = "stablehlo.constant"() {value = dense<[2, 0, 2]> : tensor<3xi32>} : () -> tensor<3xi32>
    %13 = "stablehlo.reshape"(%12) {} : (tensor<3xi32>) -> tensor<3x1xi32>
    %14 = "stablehlo.constant"() {value = dense<1> : tensor<3x4xi32>} : () -> tensor<3x4xi32>
    %15 = "stablehlo.scatter"(%22, %13, %14) ({
^bb0(%x15: tensor<i32>, %y15: tensor<i32>):
%z15 = "stablehlo.or"(%x15, %y15) : (tensor<i32>, tensor<i32>) -> tensor<i32>
"stablehlo.return"(%z15) : (tensor<i32>) -> ()
    }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<2x4xi32>, tensor<3x1xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
    return %15, %7 : tensor<2x4xi32>, tensor<5x4xi32>
  }
}
