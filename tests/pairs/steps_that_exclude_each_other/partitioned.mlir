module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<2x3xi32> ) -> (tensor<2x3xi32> ) {
    %1 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %2 = "stablehlo.constant"() {value = dense<0> : tensor<4x3xi32>} : () -> tensor<4x3xi32>
    %3 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %4 = "stablehlo.convert"(%3) {} : (tensor<ui32>) -> tensor<i32>
    %5 = "stablehlo.constant"() {value = dense<[1, 0, 1, 0]> : tensor<4xi32>} : () -> tensor<4xi32>
    %6 = "stablehlo.dynamic_slice"(%5, %4) {slice_sizes = array<i64: 1>} : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
    %7 = "stablehlo.reshape"(%6) {} : (tensor<1xi32>) -> tensor<i32>
    %8 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %9 = "stablehlo.multiply"(%7, %8) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %10 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %11 = "stablehlo.dynamic_update_slice"(%2, %0, %9, %10) {} : (tensor<4x3xi32>, tensor<2x3xi32>, tensor<i32>, tensor<i32>) -> tensor<4x3xi32>
    %12 = "stablehlo.reshape"(%11) {} : (tensor<4x3xi32>) -> tensor<1x4x3xi32>
    %13 = "stablehlo.all_gather"(%12) {replica_groups = dense<[[2, 1], [0, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids, all_gather_dim = 0 : i64} : (tensor<1x4x3xi32>) -> tensor<2x4x3xi32>
    %s14 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %14 = "stablehlo.reduce"(%13, %s14) ({
^bb0(%x14: tensor<i32>, %y14: tensor<i32>):
%z14 = "stablehlo.or"(%x14, %y14) : (tensor<i32>, tensor<i32>) -> tensor<i32>
"stablehlo.return"(%z14) : (tensor<i32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<2x4x3xi32>, tensor<i32>) -> tensor<4x3xi32>
    %15 = "stablehlo.all_gather"(%14) {replica_groups = dense<[[1, 3], [2, 0]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids, all_gather_dim = 1 : i64} : (tensor<4x3xi32>) -> tensor<4x6xi32>
    %16 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %17 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %18 = "stablehlo.convert"(%17) {} : (tensor<ui32>) -> tensor<i32>
    %19 = "stablehlo.constant"() {value = dense<[1, 0, 1, 0]> : tensor<4xi32>} : () -> tensor<4xi32>
    %20 = "stablehlo.dynamic_slice"(%19, %18) {slice_sizes = array<i64: 1>} : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
    %21 = "stablehlo.reshape"(%20) {} : (tensor<1xi32>) -> tensor<i32>
    %22 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %23 = "stablehlo.multiply"(%21, %22) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %61 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %62 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %63 = "stablehlo.clamp"(%61, %16, %62) {} : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %64 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %65 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %66 = "stablehlo.clamp"(%64, %23, %65) {} : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %67 = "stablehlo.dynamic_slice"(%15, %63, %66) {slice_sizes = array<i64: 4, 3>} : (tensor<4x6xi32>, tensor<i32>, tensor<i32>) -> tensor<4x3xi32>
    %50, %51 = "stablehlo.while"(%1, %67) ({
    ^bb0(%25: tensor<i32>, %26: tensor<4x3xi32>):
      %27 = "stablehlo.constant"() {value = dense<6> : tensor<i32>} : () -> tensor<i32>
      %28 = "stablehlo.compare"(%25, %27) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%28) : (tensor<i1>) -> ()
    }, {
    ^bb0(%29: tensor<i32>, %30: tensor<4x3xi32>):
      %31 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
      %32 = "stablehlo.add"(%29, %31) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %33 = "stablehlo.all_gather"(%0) {replica_groups = dense<[[1, 2], [3, 0]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids, all_gather_dim = 0 : i64} : (tensor<2x3xi32>) -> tensor<4x3xi32>
      %83 = "stablehlo.all_gather"(%33) {replica_groups = dense<[[2, 0], [1, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids, all_gather_dim = 1 : i64} : (tensor<4x3xi32>) -> tensor<4x6xi32>
      %79 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
      %80 = "stablehlo.constant"() {value = dense<1> : tensor<ui32>} : () -> tensor<ui32>
      %81 = "stablehlo.compare"(%79, %80) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      %82 = "stablehlo.broadcast_in_dim"(%81) {broadcast_dimensions = array<i64>} : (tensor<i1>) -> tensor<4x6xi1>
      %84 = "stablehlo.constant"() {value = dense<1> : tensor<4x6xi32>} : () -> tensor<4x6xi32>
      %85 = "stablehlo.add"(%83, %84) {} : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
      %34 = "stablehlo.select"(%82, %85, %83) {} : (tensor<4x6xi1>, tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
      %35 = "stablehlo.slice"(%34) {start_indices = array<i64: 1, 3>, limit_indices = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<4x6xi32>) -> tensor<1x1xi32>
      %36 = "stablehlo.reshape"(%35) {} : (tensor<1x1xi32>) -> tensor<i32>
      %37 = "stablehlo.constant"() {value = dense<-1> : tensor<i32>} : () -> tensor<i32>
      %38 = "stablehlo.constant"() {value = dense<10> : tensor<1x2xi32>} : () -> tensor<1x2xi32>
      %39 = "stablehlo.all_gather"(%30) {replica_groups = dense<[[3, 0], [1, 2]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids, all_gather_dim = 1 : i64} : (tensor<4x3xi32>) -> tensor<4x6xi32>
      %68 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
      %69 = "stablehlo.compare"(%36, %68) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %70 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
      %71 = "stablehlo.add"(%36, %70) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %72 = "stablehlo.select"(%69, %71, %36) {} : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %73 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
      %74 = "stablehlo.compare"(%37, %73) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %75 = "stablehlo.constant"() {value = dense<6> : tensor<i32>} : () -> tensor<i32>
      %76 = "stablehlo.add"(%37, %75) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %77 = "stablehlo.select"(%74, %76, %37) {} : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %78 = "stablehlo.dynamic_update_slice"(%39, %38, %72, %77) {} : (tensor<4x6xi32>, tensor<1x2xi32>, tensor<i32>, tensor<i32>) -> tensor<4x6xi32>
      %41 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
      %42 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
      %43 = "stablehlo.convert"(%42) {} : (tensor<ui32>) -> tensor<i32>
      %44 = "stablehlo.constant"() {value = dense<[1, 0, 1, 0]> : tensor<4xi32>} : () -> tensor<4xi32>
      %45 = "stablehlo.dynamic_slice"(%44, %43) {slice_sizes = array<i64: 1>} : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
      %46 = "stablehlo.reshape"(%45) {} : (tensor<1xi32>) -> tensor<i32>
      %47 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
      %48 = "stablehlo.multiply"(%46, %47) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %49 = "stablehlo.dynamic_slice"(%78, %41, %48) {slice_sizes = array<i64: 4, 3>} : (tensor<4x6xi32>, tensor<i32>, tensor<i32>) -> tensor<4x3xi32>
      "stablehlo.return"(%32, %49) : (tensor<i32>, tensor<4x3xi32>) -> ()
    }) {} : (tensor<i32>, tensor<4x3xi32>) -> (tensor<i32>, tensor<4x3xi32>)
    %52 = "stablehlo.partition_id"() {} : () -> tensor<ui32>
    %53 = "stablehlo.convert"(%52) {} : (tensor<ui32>) -> tensor<i32>
    %54 = "stablehlo.constant"() {value = dense<[1, 0, 0, 1]> : tensor<4xi32>} : () -> tensor<4xi32>
    %55 = "stablehlo.dynamic_slice"(%54, %53) {slice_sizes = array<i64: 1>} : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
    %56 = "stablehlo.reshape"(%55) {} : (tensor<1xi32>) -> tensor<i32>
    %57 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %58 = "stablehlo.multiply"(%56, %57) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %59 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %60 = "stablehlo.dynamic_slice"(%51, %58, %59) {slice_sizes = array<i64: 2, 3>} : (tensor<4x3xi32>, tensor<i32>, tensor<i32>) -> tensor<2x3xi32>
    return %60 : tensor<2x3xi32>
  }
}
