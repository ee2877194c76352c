# frozen_string_literal: true

# Runs the cases of some files with one library and prints the answers as JSON, for tests that compare
# libraries.
#
#   ruby test/serializer/run_cases.rb original test/serializer/cases/members.rb
#
# `original` is jsonapi-serializer, `castellan` is Castellan::Serializer, `compat` is JSONAPI::Serializer as
# Castellan defines it, and `bare` is Castellan::Serializer without ActiveSupport.
require "json"
require "set"
library, *files = ARGV

unless library == "bare"
  require "active_record"
  require "active_support/core_ext/object/json"
end

case library
when "original"
  verbose, $VERBOSE = $VERBOSE, nil
  require "jsonapi/serializer"
  $VERBOSE = verbose
else
  require_relative "../support/raise_warnings"
  require library == "compat" ? "castellan/compat/jsonapi_serializer" : "castellan/serializer"
end

require_relative "case_kit"
require_relative "records"
files.each { |file| require File.expand_path(file) }
puts JSON.generate(SerializerCases.answers(defined?(JSONAPI::Serializer) ? JSONAPI::Serializer : Castellan::Serializer))
