module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<1x1xi32> , %1: tensor<4x1xi32> ) -> (tensor<4x1xi32> , tensor<4x1xi32> ) {
    %2 = "stablehlo.all_gather"(%0) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids, all_gather_dim = 0 : i64} : (tensor<1x1xi32>) -> tensor<4x1xi32>
    %3 = "stablehlo.slice"(%2) {start_indices = array<i64: 3, 0>, limit_indices = array<i64: 4, 1>, strides = array<i64: 1, 1>} : (tensor<4x1xi32>) -> tensor<1x1xi32>
    %4 = "stablehlo.constant"() {value = dense<16> : tensor<3x1xi32>} : () -> tensor<3x1xi32>
    %5 = "stablehlo.concatenate"(%3, %4) {dimension = 0 : i64} : (tensor<1x1xi32>, tensor<3x1xi32>) -> tensor<4x1xi32>
    %6 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %7 = "stablehlo.convert"(%6) {} : (tensor<ui32>) -> tensor<i32>
    %8 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %9 = "stablehlo.dynamic_slice"(%5, %7, %8) {slice_sizes = array<i64: 1, 1>} : (tensor<4x1xi32>, tensor<i32>, tensor<i32>) -> tensor<1x1xi32>
    %10 = "stablehlo.add"(%0, %9) {} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %11 = "stablehlo.maximum"(%10, %10) {} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %12 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %13 = "stablehlo.pad"(%1, %12) {edge_padding_low = array<i64: -1, 0>, edge_padding_high = array<i64: 1, 0>, interior_padding = array<i64: 0, 0>} : (tensor<4x1xi32>, tensor<i32>) -> tensor<4x1xi32>
    %14 = "stablehlo.subtract"(%1, %13) {} : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi32>
    %15 = "stablehlo.constant"() {value = dense<0> : tensor<4x1xi32>} : () -> tensor<4x1xi32>
    %16 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %17 = "stablehlo.convert"(%16) {} : (tensor<ui32>) -> tensor<i32>
    %18 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %19 = "stablehlo.subtract"(%17, %18) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %20 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %21 = "stablehlo.add"(%19, %20) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %22 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %27, %28 = "func.call"(%11, %15, %21, %22) {callee = @f27} : (tensor<1x1xi32>, tensor<4x1xi32>, tensor<i32>, tensor<i32>) -> (tensor<4x1xi32>, tensor<1x1xi32>)
    %29 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %30 = "stablehlo.subtract"(%17, %29) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %31 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %32 = "stablehlo.add"(%30, %31) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %33 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %34 = "stablehlo.remainder"(%32, %33) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %35 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %36 = "stablehlo.multiply"(%34, %35) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %37 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %38 = "stablehlo.dynamic_update_slice"(%27, %28, %36, %37) {} : (tensor<4x1xi32>, tensor<1x1xi32>, tensor<i32>, tensor<i32>) -> tensor<4x1xi32>
    %39 = "stablehlo.collective_permute"(%28) {source_target_pairs = dense<[[1, 2], [3, 0], [2, 3], [0, 1]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<1x1xi32>) -> tensor<1x1xi32>
    %40 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %41 = "stablehlo.subtract"(%17, %40) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %42 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %89 = "stablehlo.add"(%41, %42) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %85 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %86 = "stablehlo.constant"() {value = dense<1> : tensor<ui32>} : () -> tensor<ui32>
    %87 = "stablehlo.compare"(%85, %86) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %88 = "stablehlo.broadcast_in_dim"(%87) {broadcast_dimensions = array<i64>} : (tensor<i1>) -> tensor<i1>
    %90 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %91 = "stablehlo.add"(%89, %90) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %43 = "stablehlo.select"(%88, %91, %89) {} : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %44 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %45 = "stablehlo.remainder"(%43, %44) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %46 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %47 = "stablehlo.multiply"(%45, %46) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %48 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %49 = "stablehlo.dynamic_update_slice"(%38, %39, %47, %48) {} : (tensor<4x1xi32>, tensor<1x1xi32>, tensor<i32>, tensor<i32>) -> tensor<4x1xi32>
    %50 = "stablehlo.collective_permute"(%39) {source_target_pairs = dense<[[2, 3], [1, 2], [3, 0], [0, 1]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<1x1xi32>) -> tensor<1x1xi32>
    %51 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %52 = "stablehlo.subtract"(%17, %51) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %53 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %54 = "stablehlo.add"(%52, %53) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %55 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %56 = "stablehlo.remainder"(%54, %55) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %57 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %58 = "stablehlo.multiply"(%56, %57) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %59 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %60 = "stablehlo.dynamic_update_slice"(%49, %50, %58, %59) {} : (tensor<4x1xi32>, tensor<1x1xi32>, tensor<i32>, tensor<i32>) -> tensor<4x1xi32>
    return %14, %60 : tensor<4x1xi32>, tensor<4x1xi32>
  }
  func.func private @f27(%61: tensor<1x1xi32>, %62: tensor<4x1xi32>, %63: tensor<i32>, %64: tensor<i32>) -> (tensor<4x1xi32>, tensor<1x1xi32>) {
    %65 = "stablehlo.remainder"(%63, %64) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %81 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %77 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %78 = "stablehlo.constant"() {value = dense<1> : tensor<ui32>} : () -> tensor<ui32>
    %79 = "stablehlo.compare"(%77, %78) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %80 = "stablehlo.broadcast_in_dim"(%79) {broadcast_dimensions = array<i64>} : (tensor<i1>) -> tensor<i1>
    %82 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %83 = "stablehlo.add"(%81, %82) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %66 = "stablehlo.select"(%80, %83, %81) {} : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %67 = "stablehlo.multiply"(%65, %66) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %69, %70 = "func.call"(%61, %62, %67) {callee = @f69} : (tensor<1x1xi32>, tensor<4x1xi32>, tensor<i32>) -> (tensor<4x1xi32>, tensor<1x1xi32>)
    return %69, %70 : tensor<4x1xi32>, tensor<1x1xi32>
  }
  func.func private @f69(%71: tensor<1x1xi32>, %72: tensor<4x1xi32>, %73: tensor<i32>) -> (tensor<4x1xi32>, tensor<1x1xi32>) {
    %74 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %75 = "stablehlo.dynamic_update_slice"(%72, %71, %73, %74) {} : (tensor<4x1xi32>, tensor<1x1xi32>, tensor<i32>, tensor<i32>) -> tensor<4x1xi32>
    %76 = "stablehlo.collective_permute"(%71) {source_target_pairs = dense<[[1, 2], [2, 3], [3, 0], [0, 1]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<1x1xi32>) -> tensor<1x1xi32>
    return %75, %76 : tensor<4x1xi32>, tensor<1x1xi32>
  }
}
