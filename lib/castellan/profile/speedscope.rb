# frozen_string_literal: true

module Castellan
  module Profile
    # Sampled stacks in the file format of speedscope (https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources).
    #
    #   Speedscope.of([[[["User#name", "app/models/user.rb", 4]], 1_000]], name: "GET /users", unit: "nanoseconds")
    #
    # A stack is a list of frames from the outermost to the innermost, a frame its name, path and line (or nil). Pure function.
    module Speedscope
      SCHEMA = "https://www.speedscope.app/file-format-schema.json"
      MOST = 20_000 # stacks

      module_function

      # @param stacks [Array<Array>] pairs of stack and weight
      # @param name [String]
      # @param unit [String] "nanoseconds", "bytes" or "none"
      # @return [Hash{String => Object}]
      def of(stacks, name:, unit:)
        numbers = {}
        samples = stacks.first(MOST).map { |stack, _| stack.map { |frame| numbers[frame] ||= numbers.size } }
        weights = stacks.first(MOST).map(&:last)
        { "$schema" => SCHEMA, "exporter" => "castellan #{VERSION}", "name" => name, "activeProfileIndex" => 0,
          "shared" => { "frames" => numbers.keys.map { |frame| frame(*frame) } },
          "profiles" => [{ "type" => "sampled", "name" => name, "unit" => unit, "startValue" => 0, "endValue" => weights.sum,
                           "samples" => samples, "weights" => weights }] }
      end

      def frame(name, file, line)
        file &&= Redaction.text(file).delete_prefix("#{CallSite.root}/")
        { "name" => Redaction.text(name), "file" => file, "line" => line }.compact
      end
      private_class_method :frame
    end
  end
end
