# frozen_string_literal: true

require "rails/generators"
require "rails/generators/named_base"
require "castellan"
require "castellan/nearest"
require_relative "model_members"

module Castellan
  # The generators for `bin/rails generate castellan:…`.
  module Generators
    # Writes a resource with the columns and associations of a model, and comments about what is left out.
    #
    #   bin/rails generate castellan:resource User          # app/resources/user_resource.rb
    #   bin/rails generate castellan:resource Admin::User   # app/resources/admin/user_resource.rb
    #
    # Leaves out columns that look secret (filtered parameters, digests, tokens, encrypted attributes) and
    # lists them. An association without a resource becomes a comment, because a resource that declares it
    # would not boot.
    class ResourceGenerator < ::Rails::Generators::NamedBase
      source_root File.expand_path("templates", __dir__)

      # @raise [Thor::Error] if the model does not exist or its table cannot be read
      def find_model
        @members = ModelMembers.new(model, namespace: class_path)
        members.attributes # reads the table
      rescue ::ActiveRecord::ActiveRecordError => error
        raise Thor::Error, "#{class_name} cannot be read: #{error.message.lines.first}"
      end

      def write_resource
        template "resource.rb.tt", File.join("app/resources", class_path, "#{file_name}_resource.rb")
      end

      def say_what_was_left_out
        members.secrets.each { |name| say_status "left out", "#{name}, which looks secret: declare it if clients may see it", :yellow }
        say_status "left out", "id, because the table has no primary key: write `id :column`, or the application does not boot", :yellow \
          unless members.key?
        members.absent.each { |declaration, why| say_status "left out", "#{declaration} #{why}", :yellow }
      end

      private

      attr_reader :members

      def model
        found = class_name.safe_constantize
        return found if found.is_a?(Class) && found < ::ActiveRecord::Base

        ::Rails.application.eager_load!
        known = ::ActiveRecord::Base.descendants.filter_map(&:name).reject { |name| name.start_with?("HABTM_") }
        raise Thor::Error, "#{class_name} is not a model of ActiveRecord#{Nearest.hint(class_name, known)}"
      end
    end
  end
end
