module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=4], device_ids=[2, 1, 3, 0]>
  func.func public @main(%10: tensor<0xi1> {mhlo.sharding = "{devices=[4]2,1,3,0}"}, %11: tensor<0xi32> {mhlo.sharding = "{devices=[4]2,1,3,0}"}) -> (tensor<2xi32> {mhlo.sharding = "{replicated}"}, tensor<0xi32> {mhlo.sharding = "{devices=[4]2,1,3,0}"}) {
    %12, %13 = "sdy.manual_computation"(%10, %11) ({
    ^bb0(%0: tensor<0xi1>, %1: tensor<0xi32>):
      %7 = "stablehlo.constant"() {value = dense<1> : tensor<2xi32>} : () -> tensor<2xi32>
      %9 = "stablehlo.constant"() {value = dense<0> : tensor<0xi32>} : () -> tensor<0xi32>
      "sdy.return"(%7, %9) : (tensor<2xi32>, tensor<0xi32>) -> ()
    }) {in_shardings = #sdy.sharding_per_value<[<@mesh, [{"a"}]>, <@mesh, [{"a"}]>]>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{"a"}]>]>, manual_axes = #sdy<manual_axes{"a"}>} : (tensor<0xi1>, tensor<0xi32>) -> (tensor<2xi32>, tensor<0xi32>)
    return %12, %13 : tensor<2xi32>, tensor<0xi32>
  }
}
