# frozen_string_literal: true

require "json"
require "rack/utils"

module Castellan
  module Serve
    # Renders one document as HTML, see {Pages}. The template escapes every value.
    #
    #   DocumentPage.new("Blog API", JSON.parse(body), 200, env, app, nil).to_html
    class DocumentPage
      STYLE = File.read(File.join(__dir__, "page.css"), encoding: "UTF-8").freeze
      # Identifiers shown per relationship; further ones are counted.
      MOST = 10
      LONGEST = 400 # characters of a value
      private_constant :MOST, :LONGEST

      template = File.read(File.join(__dir__, "page.html.erb"), encoding: "UTF-8")
      Profile::Page::HtmlTemplate.new(template).def_method(self, "html", "page.html.erb")

      # @param title [String] of the API
      # @param document [Hash] the parsed JSON document
      # @param status [Integer]
      # @param env [Hash] Rack's environment
      # @param app [App] finds the endpoint of a path or a type
      # @param prefix [String, nil] the base of links
      def initialize(title, document, status, env, app, prefix)
        @title = title
        @document = document
        @status = status
        @app = app
        @path = ClientText.shown(env["PATH_INFO"].to_s, LONGEST)
        @base = prefix.to_s
        @query = query(env["QUERY_STRING"].to_s)
        @endpoint, _, *@rest = app.route(ClientText.utf8(env["PATH_INFO"].to_s))
      end

      # @return [String] the page, in UTF-8
      def to_html
        html
      end

      private

      def style
        markup(STYLE)
      end

      def heading
        return "#{@status} #{@document["errors"].first["title"]}" if errors.any?

        @endpoint ? @path.delete_prefix("/") : "Collections"
      end

      def crumbs
        steps = @path.split("/").reject(&:empty?)
        # The segments are already percent-encoded.
        hrefs = steps.map { |step| Rack::Utils.escape_path(step).gsub("%25", "%") }
        steps.each_with_index.filter_map { |step, index| [step, "#{@base}/#{hrefs[0..index].join("/")}"] unless step == "relationships" }
      end

      def errors = @document["errors"] || []

      def objects = [@document["data"]].flatten.compact

      def list? = @document["data"].is_a?(Array)

      def included = (@document["included"] || []).group_by { |object| object["type"] }

      def total = @document["meta"]&.find { |_, value| value.is_a?(Integer) }

      def links
        (@document["links"] || {}).filter_map { |name, link|
          href = link.is_a?(Hash) ? link["href"] : link
          [name, href] if href.is_a?(String) && href.match?(%r{\A(?:/|https?://)}) && name != "self"
        }
      end

      def columns(objects)
        objects.flat_map { |object| (object["attributes"] || {}).keys }.uniq
      end

      def relationship_names(objects)
        objects.flat_map { |object| (object["relationships"] || {}).keys }.uniq
      end

      # @return [String, nil] the path of a resource; nil if its type has no collection
      def href(object)
        endpoint = @app.endpoint_of(object["type"]) or return
        "#{@base}#{endpoint.path}/#{ERB::Util.url_encode(object["id"].to_s)}"
      end

      def related_href(object, name)
        own = href(object)
        "#{own}/#{Rack::Utils.escape_path(name)}" if own
      end

      # @return [Array(Array<Hash>, Integer)] the first identifiers, and the number of the others
      def identifiers(member)
        all = [member["data"]].flatten.compact
        [all.first(MOST), [all.size - MOST, 0].max]
      end

      def attribute(object, name)
        return markup("") unless object["attributes"]&.key?(name)

        found = object["attributes"][name]
        found.nil? ? markup('<span class="none">null</span>') : escaped(value(found))
      end

      def relationship(object, name)
        member = object.dig("relationships", name) or return markup("")
        related = related_href(object, name)
        return link(name, related) unless member.key?("data")

        some, others = identifiers(member)
        links = some.map { |one| link("#{one["type"]} #{one["id"]}", href(one)) }
        links << link("and #{others} more", related) if others.positive?
        links.empty? ? markup('<span class="none">none</span>') : markup(links.join(", "))
      end

      def resource(object)
        title = link("#{object["type"]} #{object["id"]}", href(object))
        attributes = columns([object]).map { |name| [escaped(name), attribute(object, name)] }
        relationships = relationship_names([object]).map { |name| [link(name, related_href(object, name)), relationship(object, name)] }
        markup("<h3>#{title}</h3>#{pairs(attributes)}#{pairs(relationships)}")
      end

      def pairs(pairs)
        pairs.empty? ? "" : "<dl>#{pairs.map { |name, value| "<dt>#{name}</dt><dd>#{value}</dd>" }.join}</dl>"
      end

      def link(text, href)
        href ? markup(%(<a href="#{escaped(href)}">#{escaped(text)}</a>)) : escaped(text)
      end

      def markup(html) = Profile::Page::Markup.new(html)
      def escaped(text) = Profile::Page::Markup.of(text)

      def value(value)
        text = value.is_a?(String) ? value : JSON.generate(value)
        text.size > LONGEST ? "#{text[0, LONGEST]}…" : text
      end

      def definition
        return unless @endpoint && list? && @rest.first != "relationships"
        return @endpoint.resource.definition if @rest.empty?

        owners = @endpoint.resource.definition.written_as
        owners.filter_map { |owner| owner.relationships[owner.member_named(@rest.last)] }.first&.resource&.definition
      end

      # Omits filters and sorts that some viewers may not use.
      # @return [Array<Array<String>>] each name as members are written, then its other spellings
      def filters(definition) = spellings(definition, definition.filters_of_all)
      def sorts(definition) = spellings(definition, definition.sorts_of_all).flat_map { |names| [names, names.map { |name| "-#{name}" }] }

      def spellings(definition, names)
        names.map { |name| [definition.transform, :none, :dash].map { |transform| Resource::KeyTransform.call(name, transform) } }
      end

      def asked(*names)
        found = names.inject(@query) { |query, name| query.is_a?(Hash) ? query[name] : nil }
        found if found.is_a?(String)
      end

      def query(text)
        Parameters.read(text)
      rescue BadRequest
        {} # the page shows the error document
      end
    end
  end
end
