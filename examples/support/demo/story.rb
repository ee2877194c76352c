# frozen_string_literal: true

require "yaml"

module Castellan
  module Demo
    # Reads a published story: its steps in order, from `steps.yml` of an example.
    #
    #   story = Story.read("examples/users")
    #   story.steps.first.get   # => "/users/baseline?role=…"
    #
    # The head of steps.yml documents the keys.
    class Story
      # One step, an endpoint. `app` is a folder of the example if it has several applications.
      # `writes` are requests to send once, see {Exchange#write}.
      Step = Struct.new(:id, :title, :get, :told, :compared_with, :differs, :reason, :code, :with_castellan, :story_value, :app,
                        :conditional, :wrong_after, :writes, :headers, :needs, :late, :edits_per_second, keyword_init: true) do
        def initialize(needs: [], late: 0, **)
          super
          freeze
        end

        # @return [Step] a copy without the published figures
        def with(compared_with)
          Step.new(**to_h, compared_with: compared_with, story_value: nil)
        end
      end

      # @return [String] the folder of the example
      # @return [String] the name of the story in the ledger
      # @return [Hash{String => String}] the headers of every request
      # @return [Array<String>] the paths whose responses no step may change
      # @return [Hash{String => Object}, nil] the change that each step must show
      # @return [Array<Step>]
      attr_reader :directory, :name, :headers, :unchanged, :edit, :steps

      # @param directory [String]
      # @return [Story]
      # @raise [ConfigurationError] for an unknown key of a step
      def self.read(directory)
        new(directory, YAML.safe_load_file(File.join(directory, "steps.yml"), aliases: true))
      end

      def initialize(directory, source)
        @directory = directory
        @name = source.fetch("story")
        @headers = source.fetch("headers", {})
        @unchanged = source.fetch("unchanged", [])
        @edit = source["edit"]
        @steps = source.fetch("steps").map { |step| step_of(step) }.freeze
        freeze
      end

      # @param step [Step]
      # @return [String] the file to open, from the root of the repository
      def code(step)
        File.join("examples", File.basename(directory), step.code)
      end

      # @param ids [Array<String>] the ids of the steps to keep; each is compared with the previous one
      # @param as [String] the name of the story in the ledger
      # @return [Story]
      def only(ids, as:)
        steps = ids.each_with_index.map { |id, index| step(id).with(index.zero? ? nil : ids[index - 1]) }
        dup.tap { |copy| copy.send(:narrow, as, steps) }
      end

      # @param left_out [Array<String>] the ids of steps that no other step is compared with
      # @return [Story]
      def without(left_out)
        dup.tap { |copy| copy.send(:keep, steps.reject { |step| left_out.include?(step.id) }) }
      end

      # @param id [String, nil]
      # @return [Step, nil]
      def step(id)
        steps.find { |step| step.id == id }
      end

      # Follows the comparisons of a step with Castellan to one without.
      # @param step [Step]
      # @return [Array(Step, Array<String>), nil] that step, and the patterns of all differences on the way
      def without_castellan(step)
        patterns = []
        loop do
          patterns += step.differs
          step = step(step.compared_with) or return
          return [step, patterns] unless step.with_castellan
        end
      end

      private

      def narrow(name, steps)
        @name = name
        @unchanged = []
        keep(steps)
      end

      def keep(steps)
        @steps = steps.freeze
        freeze
      end

      def step_of(step)
        unknown = step.keys - Step.members.map(&:to_s)
        return Step.new(**step.transform_keys(&:to_sym)) if unknown.empty?

        hint = Nearest.hint(unknown.first, Step.members)
        raise ConfigurationError, "#{directory}/steps.yml: #{unknown.join(", ")} is no key of a step#{hint}"
      end
    end
  end
end
