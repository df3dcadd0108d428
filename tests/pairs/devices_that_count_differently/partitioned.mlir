module @m attributes {mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=3]>
  func.func public @main(%64: tensor<4x6xi32> {mhlo.sharding = "{devices=[1,2,3]0,1,2,3,4,5 last_tile_dim_replicate}"}, %65: tensor<4x6xi32> {mhlo.sharding = "{devices=[1,2,3]0,1,2,3,4,5 last_tile_dim_replicate}"}, %66: tensor<6x4xi32> {mhlo.sharding = "{devices=[2,1,3]0,1,2,3,4,5 last_tile_dim_replicate}"}) -> (tensor<2x4xi32> {mhlo.sharding = "{devices=[2,1,3]0,1,2,3,4,5 last_tile_dim_replicate}"}, tensor<5x4xi32> {mhlo.sharding = "{replicated}"}) {
    %67, %68 = "sdy.manual_computation"(%64, %65, %66) ({
    ^bb0(%0: tensor<4x3xi32>, %1: tensor<4x3xi32>, %2: tensor<3x4xi32>):
      %13 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
      %14 = "stablehlo.convert"(%13) {} : (tensor<ui32>) -> tensor<i32>
      %15 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
      %16 = "stablehlo.divide"(%14, %15) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %17 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
      %18 = "stablehlo.remainder"(%16, %17) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %29 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
      %30 = "stablehlo.constant"() {value = dense<0> : tensor<6x4xi32>} : () -> tensor<6x4xi32>
      %31, %32, %33 = "stablehlo.while"(%29, %2, %30) ({
      ^bb0(%3: tensor<i32>, %4: tensor<3x4xi32>, %5: tensor<6x4xi32>):
        %9 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
        %10 = "stablehlo.compare"(%3, %9) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "stablehlo.return"(%10) : (tensor<i1>) -> ()
      }, {
      ^bb0(%6: tensor<i32>, %7: tensor<3x4xi32>, %8: tensor<6x4xi32>):
        %60 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
        %56 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
        %57 = "stablehlo.constant"() {value = dense<0> : tensor<ui32>} : () -> tensor<ui32>
        %58 = "stablehlo.compare"(%56, %57) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
        %59 = "stablehlo.broadcast_in_dim"(%58) {broadcast_dimensions = array<i64>} : (tensor<i1>) -> tensor<i1>
        %61 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
        %62 = "stablehlo.add"(%60, %61) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %11 = "stablehlo.select"(%59, %62, %60) {} : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
        %12 = "stablehlo.add"(%6, %11) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %19 = "stablehlo.subtract"(%18, %6) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %20 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
        %21 = "stablehlo.add"(%19, %20) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %22 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
        %23 = "stablehlo.remainder"(%21, %22) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %24 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
        %25 = "stablehlo.multiply"(%23, %24) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %26 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
        %27 = "stablehlo.dynamic_update_slice"(%8, %7, %25, %26) {} : (tensor<6x4xi32>, tensor<3x4xi32>, tensor<i32>, tensor<i32>) -> tensor<6x4xi32>
        %28 = "stablehlo.collective_permute"(%7) {source_target_pairs = dense<[[2, 5], [3, 0], [4, 1], [0, 3], [5, 2], [1, 4]]> : tensor<6x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<3x4xi32>) -> tensor<3x4xi32>
        "stablehlo.return"(%12, %28, %27) : (tensor<i32>, tensor<3x4xi32>, tensor<6x4xi32>) -> ()
      }) {} : (tensor<i32>, tensor<3x4xi32>, tensor<6x4xi32>) -> (tensor<i32>, tensor<3x4xi32>, tensor<6x4xi32>)
      %34 = "stablehlo.slice"(%33) {start_indices = array<i64: 0, 1>, limit_indices = array<i64: 1, 2>, strides = array<i64: 1, 1>} : (tensor<6x4xi32>) -> tensor<1x1xi32>
      %35 = "stablehlo.reshape"(%34) {} : (tensor<1x1xi32>) -> tensor<i32>
      %36 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
      %37 = "stablehlo.all_gather"(%2) {replica_groups = dense<[[0, 3], [1, 4], [2, 5]]> : tensor<3x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids, all_gather_dim = 0 : i64} : (tensor<3x4xi32>) -> tensor<6x4xi32>
      %38 = "stablehlo.dynamic_slice"(%37, %36, %35) {slice_sizes = array<i64: 5, 4>} : (tensor<6x4xi32>, tensor<i32>, tensor<i32>) -> tensor<5x4xi32>
      %39 = "stablehlo.minimum"(%38, %38) {} : (tensor<5x4xi32>, tensor<5x4xi32>) -> tensor<5x4xi32>
      %40 = "stablehlo.constant"() {value = dense<[4, 2]> : tensor<2xi32>} : () -> tensor<2xi32>
      %41 = "stablehlo.reshape"(%40) {} : (tensor<2xi32>) -> tensor<2x1xi32>
      %42 = "stablehlo.reshape"(%41) {} : (tensor<2x1xi32>) -> tensor<2x1xi32>
      %43 = "stablehlo.gather"(%39, %42) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>, indices_are_sorted = false} : (tensor<5x4xi32>, tensor<2x1xi32>) -> tensor<2x4xi32>
      %44 = "stablehlo.constant"() {value = dense<[2, 0, 2]> : tensor<3xi32>} : () -> tensor<3xi32>
      %45 = "stablehlo.reshape"(%44) {} : (tensor<3xi32>) -> tensor<3x1xi32>
      %46 = "stablehlo.constant"() {value = dense<1> : tensor<3x4xi32>} : () -> tensor<3x4xi32>
      %47 = "stablehlo.scatter"(%43, %45, %46) ({
^bb0(%x47: tensor<i32>, %y47: tensor<i32>):
%z47 = "stablehlo.or"(%x47, %y47) : (tensor<i32>, tensor<i32>) -> tensor<i32>
"stablehlo.return"(%z47) : (tensor<i32>) -> ()
      }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<2x4xi32>, tensor<3x1xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
      %48 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
      %49 = "stablehlo.convert"(%48) {} : (tensor<ui32>) -> tensor<i32>
      %50 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
      %51 = "stablehlo.divide"(%49, %50) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %52 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
      %53 = "stablehlo.remainder"(%51, %52) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %54 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
      %55 = "stablehlo.dynamic_slice"(%47, %53, %54) {slice_sizes = array<i64: 1, 4>} : (tensor<2x4xi32>, tensor<i32>, tensor<i32>) -> tensor<1x4xi32>
      "sdy.return"(%55, %39) : (tensor<1x4xi32>, tensor<5x4xi32>) -> ()
    }) {in_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>, <@mesh, [{}, {"a"}]>, <@mesh, [{"a"}, {}]>]>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>, <@mesh, [{}, {}]>]>, manual_axes = #sdy<manual_axes{"a", "b"}>} : (tensor<4x6xi32>, tensor<4x6xi32>, tensor<6x4xi32>) -> (tensor<2x4xi32>, tensor<5x4xi32>)
    return %67, %68 : tensor<2x4xi32>, tensor<5x4xi32>
  }
}
