# frozen_string_literal: true

# Sends BYTES constant bytes, created once, to measure the limit of a server. The application is loaded as well, as it is
# in the process that is compared: with more objects, each garbage collection takes longer.
Rack::Builder.parse_file("config.ru")

body = "x" * Integer(ENV.fetch("BYTES"))
headers = { "content-type" => "application/json", "content-length" => body.bytesize.to_s }.freeze

run ->(_env) { [200, headers.dup, [body]] }
