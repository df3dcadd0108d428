module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
  func.func public @main(%22: tensor<0x1xi1> {mhlo.sharding = "{devices=[8,1]0,1,4,5,2,3,6,7}"}, %23: tensor<1x0xf32> {mhlo.sharding = "{devices=[1,4,2]0,1,2,3,4,5,6,7 last_tile_dim_replicate}"}, %24: tensor<0x1xi1> {mhlo.sharding = "{devices=[4,1,2]0,2,4,6,1,3,5,7 last_tile_dim_replicate}"}) -> (tensor<0x1xf32> {mhlo.sharding = "{devices=[2,1,4]0,2,4,6,1,3,5,7 last_tile_dim_replicate}"}) {
    %25 = "sdy.manual_computation"(%22, %23, %24) ({
    ^bb0(%0: tensor<0x1xi1>, %1: tensor<1x0xf32>, %2: tensor<0x1xi1>):
      %3 = "stablehlo.constant"() {value = dense<1.00000000000000000e+00> : tensor<f32>} : () -> tensor<f32>
      %8 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
      %9 = "stablehlo.constant"() {value = dense<0> : tensor<ui32>} : () -> tensor<ui32>
      %10 = "stablehlo.compare"(%8, %9) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      %11 = "stablehlo.if"(%10) ({
        "stablehlo.return"(%3) : (tensor<f32>) -> ()
      }, {
        %21 = "stablehlo.all_reduce"(%3) ({
^bb0(%x21: tensor<f32>, %y21: tensor<f32>):
%z21 = "stablehlo.add"(%x21, %y21) : (tensor<f32>, tensor<f32>) -> tensor<f32>
"stablehlo.return"(%z21) : (tensor<f32>) -> ()
        }) {replica_groups = dense<[[7, 3, 1, 5], [0, 4, 2, 6]]> : tensor<2x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids} : (tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%21) : (tensor<f32>) -> ()
      }) {} : (tensor<i1>) -> tensor<f32>
      %6 = "stablehlo.broadcast_in_dim"(%11) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<0x1xf32>
      "sdy.return"(%6) : (tensor<0x1xf32>) -> ()
    }) {in_shardings = #sdy.sharding_per_value<[<@mesh, [{"b", "a", "c"}, {}]>, <@mesh, [{}, {"a", "b"}]>, <@mesh, [{"c", "a"}, {}]>]>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"c"}, {}]>]>, manual_axes = #sdy<manual_axes{"a", "b", "c"}>} : (tensor<0x1xi1>, tensor<1x0xf32>, tensor<0x1xi1>) -> tensor<0x1xf32>
    return %25 : tensor<0x1xf32>
  }
}
