# frozen_string_literal: true

# Sends BYTES constant bytes, created once, to measure the limit of a server.
body = "x" * Integer(ENV.fetch("BYTES"))
headers = { "content-type" => "application/json", "content-length" => body.bytesize.to_s }.freeze

run ->(_env) { [200, headers.dup, [body]] }
