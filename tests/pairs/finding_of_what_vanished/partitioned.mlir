module @m attributes {mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=3], device_ids=[5, 4, 3, 1, 0, 2]>
  func.func public @main(%21: tensor<2xf32> {mhlo.sharding = "{devices=[2,3]5,4,3,1,0,2 last_tile_dim_replicate}"}, %22: tensor<2xf32> {mhlo.sharding = "{replicated}"}, %23: tensor<2xf32> {mhlo.sharding = "{devices=[2,3]5,4,3,1,0,2 last_tile_dim_replicate}"}) -> (tensor<2xf32> {mhlo.sharding = "{devices=[2,3]5,4,3,1,0,2 last_tile_dim_replicate}"}, tensor<2xf32> {mhlo.sharding = "{replicated}"}) {
    %24, %25 = "sdy.manual_computation"(%21, %22, %23) ({
    ^bb0(%0: tensor<1xf32>, %1: tensor<2xf32>, %2: tensor<1xf32>):
      %10 = "stablehlo.minimum"(%2, %2) {} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
      %11 = "stablehlo.subtract"(%10, %2) {} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
      %12 = "stablehlo.compare"(%10, %10) {comparison_direction = #stablehlo<comparison_direction LE>} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
      %13 = "stablehlo.select"(%12, %11, %11) {} : (tensor<1xi1>, tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
      %14 = "stablehlo.compare"(%13, %13) {comparison_direction = #stablehlo<comparison_direction GE>} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
      %15 = "stablehlo.select"(%14, %13, %13) {} : (tensor<1xi1>, tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
      %16 = "stablehlo.all_gather"(%13) {replica_groups = dense<[[3, 2], [5, 1], [4, 0]]> : tensor<3x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids, all_gather_dim = 0 : i64} : (tensor<1xf32>) -> tensor<2xf32>
      "sdy.return"(%15, %16) : (tensor<1xf32>, tensor<2xf32>) -> ()
    }) {in_shardings = #sdy.sharding_per_value<[<@mesh, [{"a"}]>, <@mesh, [{}]>, <@mesh, [{"a"}]>]>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"a"}]>, <@mesh, [{}]>]>, manual_axes = #sdy<manual_axes{"a", "b"}>} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
    return %24, %25 : tensor<2xf32>, tensor<2xf32>
  }
}
