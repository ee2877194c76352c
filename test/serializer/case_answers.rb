# frozen_string_literal: true

require "open3"
require "json"

# Runs cases with each library in its own process and caches the answers for all tests.
#
#   CaseAnswers.of("original", "cases/members.rb")   # => { "attributes: one attribute" => ["document", "{:data=>…}", "{\"data\":…}"] }
module CaseAnswers
  DIRECTORY = __dir__
  KNOWN = {} # rubocop:disable Style/MutableConstant

  module_function

  # @param library [String] see run_cases.rb
  # @param patterns [Array<String>] globs of files below test/serializer
  def of(library, *patterns, env: {})
    KNOWN[[library, patterns, env.keys]] ||= begin
      env = { "SERIALIZER_SHARE" => "3", **env } if Castellan::TestHelpers.part?
      files = patterns.flat_map { |pattern| Dir[File.join(DIRECTORY, pattern)] }
      output, errors, status = Open3.capture3(env, RbConfig.ruby, "-w", "-I#{ROOT}/lib", File.join(DIRECTORY, "run_cases.rb"), library,
                                              *files)
      raise errors unless status.success?

      JSON.parse(output)
    end
  end

  # @param escaped [Boolean] whether both libraries escape the same; if so, compares their bytes
  # @return [Array<String>] the names of the cases whose answers differ
  def different(was, is, escaped: true)
    was.keys.reject { |name| escaped ? was[name] == is[name] : same?(was[name], is[name]) }
  end

  # @return [String] a message for a failed assertion
  def shown(names, was, is)
    texts = names.first(5).map { |name| [name, *was[name], *is[name]].map { |text| text.to_s[0, 800] }.join("\n  ") }
    "#{names.size} of #{was.size} cases differ\n#{texts.join("\n")}"
  end

  def same?(was, is)
    return was == is unless is && was.first == "document" && is.first == "document"

    was[1] == is[1] && JSON.parse(was[2]).inspect == JSON.parse(is[2]).inspect # inspect also compares the order of members
  end
end
