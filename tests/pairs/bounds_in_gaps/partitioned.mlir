module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<4xui8> , %1: tensor<4xi32> , %2: tensor<4xi32> ) -> (tensor<8xui8> , tensor<2xi32> ) {
    %3 = "stablehlo.xor"(%1, %1) {} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %4 = "stablehlo.constant"() {value = dense<2> : tensor<2xi32>} : () -> tensor<2xi32>
    %5 = "stablehlo.constant"() {value = dense<0> : tensor<8xi32>} : () -> tensor<8xi32>
    %6 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %7 = "stablehlo.convert"(%6) {} : (tensor<ui32>) -> tensor<i32>
    %8 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %9 = "stablehlo.remainder"(%7, %8) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %10 = "stablehlo.constant"() {value = dense<-2> : tensor<i32>} : () -> tensor<i32>
    %11 = "stablehlo.subtract"(%9, %10) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %12 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %13 = "stablehlo.remainder"(%11, %12) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %14 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %15 = "stablehlo.multiply"(%13, %14) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %16 = "stablehlo.dynamic_update_slice"(%5, %3, %15) {} : (tensor<8xi32>, tensor<4xi32>, tensor<i32>) -> tensor<8xi32>
    %17 = "stablehlo.collective_permute"(%3) {source_target_pairs = dense<[[0, 1], [2, 3], [1, 0], [3, 2]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<4xi32>) -> tensor<4xi32>
    %18 = "stablehlo.constant"() {value = dense<-1> : tensor<i32>} : () -> tensor<i32>
    %19 = "stablehlo.subtract"(%9, %18) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %20 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %21 = "stablehlo.remainder"(%19, %20) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %22 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %23 = "stablehlo.multiply"(%21, %22) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %24 = "stablehlo.dynamic_update_slice"(%16, %17, %23) {} : (tensor<8xi32>, tensor<4xi32>, tensor<i32>) -> tensor<8xi32>
    %25 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %26 = "stablehlo.convert"(%25) {} : (tensor<ui32>) -> tensor<i32>
    %27 = "stablehlo.constant"() {value = dense<[0, 2, 1, 3]> : tensor<4xi32>} : () -> tensor<4xi32>
    %28 = "stablehlo.dynamic_slice"(%27, %26) {slice_sizes = array<i64: 1>} : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
    %29 = "stablehlo.reshape"(%28) {} : (tensor<1xi32>) -> tensor<i32>
    %30 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %31 = "stablehlo.multiply"(%29, %30) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %32 = "stablehlo.dynamic_slice"(%24, %31) {slice_sizes = array<i64: 2>} : (tensor<8xi32>, tensor<i32>) -> tensor<2xi32>
    %33 = "stablehlo.divide"(%32, %4) {} : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %s34 = "stablehlo.constant"() {value = dense<0> : tensor<ui8>} : () -> tensor<ui8>
    %34 = "stablehlo.reduce"(%0, %s34) ({
^bb0(%x34: tensor<ui8>, %y34: tensor<ui8>):
%z34 = "stablehlo.add"(%x34, %y34) : (tensor<ui8>, tensor<ui8>) -> tensor<ui8>
"stablehlo.return"(%z34) : (tensor<ui8>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<4xui8>, tensor<ui8>) -> tensor<ui8>
    %35 = "stablehlo.all_reduce"(%34) ({
^bb0(%x35: tensor<ui8>, %y35: tensor<ui8>):
%z35 = "stablehlo.add"(%x35, %y35) : (tensor<ui8>, tensor<ui8>) -> tensor<ui8>
"stablehlo.return"(%z35) : (tensor<ui8>) -> ()
    }) {replica_groups = dense<[[2, 3], [1, 0]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids} : (tensor<ui8>) -> tensor<ui8>
    %36 = "stablehlo.broadcast_in_dim"(%35) {broadcast_dimensions = array<i64>} : (tensor<ui8>) -> tensor<4xui8>
    %37 = "stablehlo.all_gather"(%36) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids, all_gather_dim = 0 : i64} : (tensor<4xui8>) -> tensor<8xui8>
    return %37, %33 : tensor<8xui8>, tensor<2xi32>
  }
}
