# frozen_string_literal: true

# Requests the baseline of the users example with and without the detector in turns, and prints the
# nanoseconds of each pair as JSON. benchmark/detect.rb runs it in the bundle of the example.
require_relative "../../lib/castellan"
Dir.chdir(ARGV.fetch(0))
require File.expand_path("config/environment")
$LOAD_PATH.unshift(File.expand_path("../../lib", __dir__))
require "castellan/detect"
require "json"
require "rack/mock"

headers = { "HTTP_AUTHORIZATION" => "Bearer castellan-demo", "HTTP_HOST" => "localhost" }
request = lambda do
  response = Rack::MockRequest.new(Rails.application).get("/users/baseline?role=Administrator,Manager", headers)
  abort "the baseline answered #{response.status}" unless response.status == 200
end
watched = -> { Castellan::Recording.open(Castellan::Detect::Tally.new) { request.call } }
time = lambda do |work|
  GC.start
  GC.disable
  started = Castellan::Clock.monotonic_ns
  work.call
  (Castellan::Clock.monotonic_ns - started).tap { GC.enable }
end

3.times { request.call }
counter = Castellan::Instrument::Counter.new
Castellan::Instrument.record(counter, &request)
findings = Castellan::Detect.watch(&request).size
Castellan::Instrument.subscribe
pairs = Array.new(Integer(ENV.fetch("PAIRS"))) do |index|
  index.even? ? [time.call(request), time.call(watched)] : [time.call(watched), time.call(request)].reverse
end
puts JSON.generate(queries: counter.queries, findings: findings, pairs: pairs)
