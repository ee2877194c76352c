# frozen_string_literal: true

require "fileutils"

module Castellan
  module Demo
    # Where the examples are run: in a checkout where they lie, because their databases, logs and locks are theirs and ignored by git.
    # From an installed gem, which nobody writes to, they are copied to the working directory first, where one can open and change them.
    #
    #   Workplace.new.examples($stderr)   # => "/home/ada/castellan/examples", or "/home/ada/trial/castellan-examples"
    #
    # A copy is made once a version, and kept: its databases are filled only once.
    class Workplace
      ROOT = File.expand_path("../../..", __dir__)
      COPY = "castellan-examples"
      MARK = "CASTELLAN_VERSION"
      private_constant :ROOT, :COPY, :MARK

      # @param root [String] of the gem
      # @param directory [String] where a copy is made
      # @param gems [Array<String>] where gems are installed, which is not written to
      def initialize(root: ROOT, directory: Dir.pwd, gems: Gem.path)
        @root = File.realpath(root)
        @copy = File.join(directory, COPY)
        @gems = gems
      end

      # @param out [IO] told where the copy is
      # @return [String] the folder of the examples
      # @raise [Error] when a copy cannot be made there
      def examples(out)
        return original unless installed?

        copy(out) unless current?
        @copy
      end

      private

      def original = File.join(@root, "examples")

      def installed?
        @gems.any? { |gems| File.directory?(gems) && @root.start_with?("#{File.realpath(gems)}/") } || !File.writable?(original)
      end

      def mark = File.join(@copy, MARK)
      def current? = File.file?(mark) && File.read(mark).strip == VERSION

      def copy(out)
        refuse_foreign
        out.puts "The examples are copied to #{@copy}, where their databases are made and their code can be changed."
        FileUtils.mkdir_p(@copy)
        FileUtils.cp_r(File.join(original, "."), @copy)
        FileUtils.chmod_R("u+w", @copy)
        Dir.glob(File.join(@copy, "**/Gemfile")) { |gemfile| name_gem(gemfile) }
        File.write(mark, "#{VERSION}\n")
      rescue SystemCallError => error
        raise Error, "the examples cannot be copied to #{@copy} (#{error.message}); run castellan demo in a folder that you can write to"
      end

      def refuse_foreign
        return if !File.exist?(@copy) || File.file?(mark)

        raise Error, "#{@copy} is there and was not made by castellan demo; run it in another folder"
      end

      # The Gemfile of an example names this gem by the way from its folder to it, which is another one now.
      def name_gem(gemfile)
        File.write(gemfile, File.read(gemfile).sub(/(gem "castellan", path: )"[^"]*"/) { "#{Regexp.last_match(1)}#{@root.inspect}" })
      end
    end
  end
end
