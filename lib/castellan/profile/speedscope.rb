# frozen_string_literal: true

module Castellan
  module Profile
    # Converts stacks to speedscope's file format.
    # https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources
    #
    #   Speedscope.of([[[["User#name", "app/user.rb", 4]], 1_000]], name: "GET /users", unit: "nanoseconds")
    #
    # A stack lists its frames from the outermost to the innermost; a frame is a name, a path and a line, or
    # nil. Drops the outermost frames that all stacks share (about thirty of Rack and Rails), except the last
    # and those of the application.
    module Speedscope
      SCHEMA = "https://www.speedscope.app/file-format-schema.json"
      MOST = 20_000 # stacks

      module_function

      # @param stacks [Array<Array>] pairs of a stack and its weight in `unit`
      # @param name [String]
      # @param unit [String] "nanoseconds", "bytes" or "none"
      # @return [Hash{String => Object}]
      def of(stacks, name:, unit:)
        numbers = {}
        stacks = without_shared(stacks.first(MOST))
        samples = stacks.map { |stack, _| stack.map { |frame| numbers[frame] ||= numbers.size } }
        weights = stacks.map(&:last)
        { "$schema" => SCHEMA, "exporter" => "castellan #{VERSION}", "name" => name, "activeProfileIndex" => 0,
          "shared" => { "frames" => numbers.keys.map { |frame| frame(*frame) } },
          "profiles" => [{ "type" => "sampled", "name" => name, "unit" => unit, "startValue" => 0, "endValue" => weights.sum,
                           "samples" => samples, "weights" => weights }] }
      end

      # A stack of one frame without a file belongs to the garbage collector, so it is not compared.
      def without_shared(stacks)
        running = stacks.map(&:first).reject { |stack| stack.empty? || (stack.size == 1 && stack.first[1].nil?) }
        shortest = running.min_by(&:size) or return stacks
        shared = shortest.each_index.take_while do |index|
          !application?(shortest[index]) && running.all? { |stack| stack[index] == shortest[index] }
        end
        return stacks if shared.size < 2

        stacks.map { |stack, weight| [stack.size > shared.size - 1 ? stack.drop(shared.size - 1) : stack, weight] }
      end
      private_class_method :without_shared

      def application?(frame) = !frame[1].nil? && CallSite.application?(frame[1])
      private_class_method :application?

      def frame(name, file, line)
        file &&= Redaction.text(file).delete_prefix("#{CallSite.root}/")
        { "name" => Redaction.text(name), "file" => file, "line" => line }.compact
      end
      private_class_method :frame
    end
  end
end
