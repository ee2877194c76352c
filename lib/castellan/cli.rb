# frozen_string_literal: true

require_relative "../castellan"

module Castellan
  # Runs the command line.
  # Each command is a class with `.summary` and `#call`, which returns the exit status.
  #
  #   Castellan::CLI.call(%w[load http://127.0.0.1:3000/posts -c 10 -t 5])  # => 0
  module CLI
    COMMANDS = { "cache" => :CacheCommand, "doctor" => :DoctorCommand, "load" => :LoadCommand, "new" => :NewCommand,
                 "proxy" => :ProxyCommand, "types" => :TypesCommand }.freeze
    ALIASES = { "siege" => "load" }.freeze
    private_constant :COMMANDS, :ALIASES

    module_function

    # @param argv [Array<String>]
    # @return [Integer] the exit status: 0; 1 if the command failed; 2 for wrong arguments
    def call(argv, out: $stdout, err: $stderr)
      name, *rest = argv
      name, rest = [rest.first, ["--help"]] if name == "help" && rest.any?
      return help(out) if [nil, "help", "-h", "--help"].include?(name)
      return version(out) if ["version", "-v", "--version"].include?(name)

      command = COMMANDS[ALIASES.fetch(name, name)] or return unknown(name, err)
      const_get(command).new(rest, out: out, err: err).call
    end

    def help(out)
      out.puts "castellan finds why a JSON endpoint is slow, makes it fast, and proves each step.", ""
      COMMANDS.each { |name, command| out.puts format("  castellan %-8s %s", name, const_get(command).summary) }
      out.puts "", "castellan COMMAND --help lists the options. CASTELLAN=off in the environment switches Castellan off in an application."
      0
    end

    def version(out)
      out.puts "castellan #{VERSION}"
      0
    end

    def unknown(name, err)
      require_relative "nearest"
      err.puts "castellan: there is no command #{name.inspect}#{Nearest.hint(name, COMMANDS.keys + ALIASES.keys)}"
      2
    end
  end
end

require_relative "cli/command"
require_relative "cli/cache_command"
require_relative "cli/doctor_command"
require_relative "cli/load_command"
require_relative "cli/new_command"
require_relative "cli/proxy_command"
require_relative "cli/type_script"
require_relative "cli/types_command"
