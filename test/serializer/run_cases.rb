# frozen_string_literal: true

# The process of test/serializer/differential_test.rb: prints the answers of all cases as JSON, by the library that is named.
require "active_record"
require "active_support/core_ext/object/json"
ActiveSupport::JSON::Encoding.time_precision = 3

tested = case ARGV.first
         when "original"
           verbose, $VERBOSE = $VERBOSE, nil
           require "jsonapi/serializer"
           $VERBOSE = verbose
           JSONAPI::Serializer
         when "castellan"
           require_relative "../support/raise_warnings"
           require "castellan/serializer"
           Castellan::Serializer
         end

require_relative "case_kit"
require_relative "records"
Dir[File.join(__dir__, "cases", "*.rb")].each { |file| require file }

puts JSON.generate(SerializerCases.answers(tested))
