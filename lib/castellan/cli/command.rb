# frozen_string_literal: true

require "optparse"
require_relative "../ledger"

module Castellan
  module CLI
    # Base class of the commands. Parses options, and turns errors into messages and exit statuses.
    #
    #   class HelloCommand < Command
    #     USAGE = "castellan hello NAME"
    #
    #     def self.summary = "greets"
    #
    #     private
    #
    #     def options(parser) = parser.on("--loud", "in capitals") { @loud = true }
    #     def run(name) = @out.puts(@loud ? name.upcase : name) || 0
    #   end
    class Command
      # Raised for wrong arguments; the exit status is 2.
      class WrongArguments < Castellan::Error; end

      # @return [String] the name on the command line
      def self.title = name[/(\w+)Command\z/, 1].downcase

      def initialize(argv, out: $stdout, err: $stderr)
        @argv = argv
        @out = out
        @err = err
      end

      # @return [Integer] the exit status of {#run}; 1 after an error of Castellan or of a file, 2 for wrong arguments,
      #   130 after Ctrl-C
      def call
        catch(:helped) { run(*parser.parse(@argv)) }
      rescue OptionParser::ParseError, WrongArguments => error
        failed("#{error.message}#{described(error)}\n#{self.class::USAGE}; castellan #{self.class.title} --help lists the options", 2)
      rescue Castellan::Error, SystemCallError => error
        failed(error.message, 1)
      rescue Interrupt
        failed(interrupted, 130)
      end

      private

      def parser
        OptionParser.new("Usage: #{self.class::USAGE}\n\n#{self.class.summary.sub(/\A\w/, &:upcase)}.\n\n") do |parser|
          options(parser)
          parser.on("-h", "--help", "print this") { @out.puts(parser) || throw(:helped, 0) }
        end
      end

      # @return [String, nil] what to write, from the option's line of --help; nil if the error contains that itself
      def described(error)
        option = error.message[/\A\w+ argument: (--[\w-]+|-\w)[^":]*\z/, 1] or return
        line = parser.help.lines.find { |text| text.match?(/\A\s+(?:-\w, )?#{option}/) }
        ": write #{line.strip.sub(/ {2,}/, ", ")}" if line
      end

      # Override this to define options.
      def options(parser); end

      # The message after Ctrl-C.
      def interrupted = "interrupted"

      # @raise [WrongArguments] if the block, which reads arguments, raises an error of Castellan
      def arguments
        yield
      rescue Castellan::Error => error
        raise WrongArguments, error.message
      end

      # Defines -H. If a name is given twice, the last value counts.
      def header_option(parser, headers)
        parser.on("-H", "--header 'NAME: VALUE'", "a header; repeatable") do |line|
          name, value = line.split(":", 2)
          raise OptionParser::InvalidArgument, "#{line.inspect} is not of the form 'Name: value'" unless value && !name.strip.empty?

          headers[name.strip] = value.strip
        end
      end

      # Defines --ledger and --step.
      def ledger_options(parser)
        parser.on("--ledger FILE", "add the figures to FILE, and print all its steps") { |file| @ledger_file = file }
        parser.on("--step NAME", "what was changed since the last step in the ledger") { |name| @step = name }
      end

      # @return [Ledger, nil] of --ledger
      # @raise [WrongArguments] for --step without it
      def ledger
        raise WrongArguments, "--step #{@step}: also name the ledger, such as --ledger ledger.jsonl" if @step && !@ledger_file

        @ledger ||= @ledger_file && Ledger.new(@ledger_file)
      end

      # Loads the doctor late, because it needs rack, which the list of commands does not.
      def load_doctor
        require_relative "../doctor"
      rescue LoadError => error
        raise unless error.path.to_s.start_with?("rack")

        raise Castellan::Error, "rack is not here; run it in the application's folder and bundle: bundle exec #{self.class::USAGE}"
      end

      # Writes what the application prints, also in its threads and at exit, to standard error, so that it does
      # not become part of the file that the command writes.
      def redirected
        return yield unless @out.equal?($stdout)

        @out = $stdout.dup
        $stdout.reopen($stderr)
        yield
      end

      def failed(message, status)
        @err.puts "castellan #{self.class.title}: #{message}"
        status
      end
    end
  end
end
