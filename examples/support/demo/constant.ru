# frozen_string_literal: true

# Measures the limit of a server: BYTES constant bytes, created once.
body = "x" * Integer(ENV.fetch("BYTES"))
headers = { "content-type" => "application/json", "content-length" => body.bytesize.to_s }.freeze

run ->(_env) { [200, headers.dup, [body]] }
