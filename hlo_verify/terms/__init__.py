"""Scalar terms over index variables: polynomials with exact coefficients over reads, functions and guards."""
