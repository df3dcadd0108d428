module @m attributes {mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<1xi8> , %1: tensor<1xf32> ) -> (tensor<1xf32> , tensor<f32> ) {
    %2 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<1xi32>
    %3 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %4 = "stablehlo.convert"(%3) {} : (tensor<ui32>) -> tensor<i32>
    %5 = "stablehlo.constant"() {value = dense<[1, 0, 1, 0, 0, 1]> : tensor<6xi32>} : () -> tensor<6xi32>
    %6 = "stablehlo.dynamic_slice"(%5, %4) {slice_sizes = array<i64: 1>} : (tensor<6xi32>, tensor<i32>) -> tensor<1xi32>
    %7 = "stablehlo.reshape"(%6) {} : (tensor<1xi32>) -> tensor<i32>
    %8 = "stablehlo.convert"(%7) {} : (tensor<i32>) -> tensor<i32>
    %9 = "stablehlo.broadcast_in_dim"(%8) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<1xi32>
    %10 = "stablehlo.add"(%2, %9) {} : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
    %s11 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
    %t11 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %11, %12 = "stablehlo.reduce"(%1, %10, %s11, %t11) ({
^bb0(%a11: tensor<f32>, %i11: tensor<i32>, %b11: tensor<f32>, %j11: tensor<i32>):
%p11 = "stablehlo.compare"(%a11, %b11) {comparison_direction = #stablehlo<comparison_direction GT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
%q11 = "stablehlo.compare"(%a11, %b11) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
%r11 = "stablehlo.compare"(%i11, %j11) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
%u11 = "stablehlo.and"(%q11, %r11) : (tensor<i1>, tensor<i1>) -> tensor<i1>
%v11 = "stablehlo.or"(%p11, %u11) : (tensor<i1>, tensor<i1>) -> tensor<i1>
%c11 = "stablehlo.select"(%p11, %a11, %b11) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
%k11 = "stablehlo.select"(%v11, %i11, %j11) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
"stablehlo.return"(%c11, %k11) : (tensor<f32>, tensor<i32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<1xf32>, tensor<1xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
    %13 = "stablehlo.reshape"(%11) {} : (tensor<f32>) -> tensor<1xf32>
    %14 = "stablehlo.reshape"(%12) {} : (tensor<i32>) -> tensor<1xi32>
    %15 = "stablehlo.all_gather"(%13) {replica_groups = dense<[[3, 2], [1, 5], [4, 0]]> : tensor<3x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids, all_gather_dim = 0 : i64} : (tensor<1xf32>) -> tensor<2xf32>
    %16 = "stablehlo.all_gather"(%14) {replica_groups = dense<[[3, 2], [1, 5], [4, 0]]> : tensor<3x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids, all_gather_dim = 0 : i64} : (tensor<1xi32>) -> tensor<2xi32>
    %s17 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
    %t17 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %17, %18 = "stablehlo.reduce"(%15, %16, %s17, %t17) ({
^bb0(%a17: tensor<f32>, %i17: tensor<i32>, %b17: tensor<f32>, %j17: tensor<i32>):
%p17 = "stablehlo.compare"(%a17, %b17) {comparison_direction = #stablehlo<comparison_direction GT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
%q17 = "stablehlo.compare"(%a17, %b17) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
%r17 = "stablehlo.compare"(%i17, %j17) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
%u17 = "stablehlo.and"(%q17, %r17) : (tensor<i1>, tensor<i1>) -> tensor<i1>
%v17 = "stablehlo.or"(%p17, %u17) : (tensor<i1>, tensor<i1>) -> tensor<i1>
%c17 = "stablehlo.select"(%p17, %a17, %b17) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
%k17 = "stablehlo.select"(%v17, %i17, %j17) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
"stablehlo.return"(%c17, %k17) : (tensor<f32>, tensor<i32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<2xf32>, tensor<2xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
    %19 = "stablehlo.all_gather"(%1) {replica_groups = dense<[[3, 2], [1, 5], [4, 0]]> : tensor<3x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids, all_gather_dim = 0 : i64} : (tensor<1xf32>) -> tensor<2xf32>
    %20 = "stablehlo.sort"(%19) ({
^bb0(%x20_0: tensor<f32>, %y20_0: tensor<f32>):
%z20 = "stablehlo.compare"(%x20_0, %y20_0) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
"stablehlo.return"(%z20) : (tensor<i1>) -> ()
    }) {dimension = 0 : i64, is_stable = true} : (tensor<2xf32>) -> tensor<2xf32>
    %21 = "stablehlo.constant"() {value = dense<0.00000000000000000e+00> : tensor<f32>} : () -> tensor<f32>
    %22 = "stablehlo.pad"(%20, %21) {edge_padding_low = array<i64: 0>, edge_padding_high = array<i64: 4>, interior_padding = array<i64: 0>} : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
    %23 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %24 = "stablehlo.convert"(%23) {} : (tensor<ui32>) -> tensor<i32>
    %25 = "stablehlo.constant"() {value = dense<[5, 1, 3, 0, 2, 4]> : tensor<6xi32>} : () -> tensor<6xi32>
    %29 = "stablehlo.slice"(%25) {start_indices = array<i64: 1>, limit_indices = array<i64: 6>, strides = array<i64: 1>} : (tensor<6xi32>) -> tensor<5xi32>
    %30 = "stablehlo.slice"(%25) {start_indices = array<i64: 0>, limit_indices = array<i64: 1>, strides = array<i64: 1>} : (tensor<6xi32>) -> tensor<1xi32>
    %31 = "stablehlo.concatenate"(%29, %30) {dimension = 0 : i64} : (tensor<5xi32>, tensor<1xi32>) -> tensor<6xi32>
    %26 = "stablehlo.dynamic_slice"(%31, %24) {slice_sizes = array<i64: 1>} : (tensor<6xi32>, tensor<i32>) -> tensor<1xi32>
    %27 = "stablehlo.reshape"(%26) {} : (tensor<1xi32>) -> tensor<i32>
    %28 = "stablehlo.dynamic_slice"(%22, %27) {slice_sizes = array<i64: 1>} : (tensor<6xf32>, tensor<i32>) -> tensor<1xf32>
    return %28, %17 : tensor<1xf32>, tensor<f32>
  }
}
