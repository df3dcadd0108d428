module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<0x4x2xi32> {mhlo.sharding = "{devices=[2,2,1]0,1,2,3}"}, %1: tensor<0x4x2xf32> {mhlo.sharding = "{devices=[2,1,1,2]0,2,1,3 last_tile_dim_replicate}"}) -> (tensor<0x4x2xf32> {mhlo.sharding = "{devices=[1,2,1,2]0,1,2,3 last_tile_dim_replicate}"}, tensor<0x4x2xi32> {mhlo.sharding = "{devices=[2,1,1,2]0,2,1,3 last_tile_dim_replicate}"}) {
    return %1, %0 : tensor<0x4x2xf32>, tensor<0x4x2xi32>
  }
}
