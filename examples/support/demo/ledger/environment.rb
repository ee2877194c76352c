# frozen_string_literal: true

require "etc"
require "rbconfig"

module Castellan
  module Demo
    class Ledger
      # Collects the versions of Ruby, gems and system, and the CPU, for the figures.
      #
      #   Environment.current(database: "SQLite 3.46", gems: %w[rails puma])
      #   # => { "ruby" => "ruby 3.1.2 (x86_64-linux-gnu)", "yjit" => "off", "rails" => "7.2.4", … }
      module Environment
        module_function

        # @param gems [Array<String>] names of gems; a loaded gem is included with its version
        # @param facts [Hash{Symbol => #to_s}] more facts, such as the database
        # @return [Hash{String => String}]
        def current(gems: [], **facts)
          { "ruby" => "#{RUBY_ENGINE} #{RUBY_ENGINE_VERSION} (#{RUBY_PLATFORM})", "yjit" => yjit,
            "cpu" => "#{cpu}, #{Etc.nprocessors} cores", "system" => "#{Etc.uname[:sysname]} #{Etc.uname[:release]}",
            "castellan" => VERSION }
            .merge(versions(gems), facts.to_h { |name, value| [name.to_s, value.to_s] })
        end

        # @return [String] "on", "off" or "not built"
        def yjit
          return "not built" unless defined?(RubyVM::YJIT)

          RubyVM::YJIT.enabled? ? "on" : "off"
        end

        # @return [String] the model name in /proc/cpuinfo, else the architecture
        def cpu
          named = File.file?("/proc/cpuinfo") && File.foreach("/proc/cpuinfo").grep(/\Amodel name/).first
          named ? named.split(":", 2).last.strip : RbConfig::CONFIG["host_cpu"]
        end

        # @return [Hash{String => String}]
        def versions(gems)
          gems.to_h { |name| [name, Gem.loaded_specs[name]&.version] }.compact.transform_values(&:to_s)
        end
      end
    end
  end
end
