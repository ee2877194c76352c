# frozen_string_literal: true

module Castellan
  module Detect
    # The call that is written at a site, with the part of its chain that stands on the lines above.
    #
    #   # user.tokens
    #   #     .where(on_behalf: false)
    #   #     .last
    #   WrittenCall.at(site_of_last)   # => "user.tokens.where(on_behalf: false).last"
    #
    # Reads lines, not syntax: text of several lines in quotes is not understood. Comments are left out.
    module WrittenCall
      MOST_LINES = 20
      GOES_ON = /\A&?\.(?!\.)/
      UNFINISHED = /\.\z/
      COMMENT = /(?:\A|\s)#(?!\{).*\z/
      LITERAL = /-?\d[\d_.]*|:\w+|"(?:[^"\\#]|\\.)*"|'[^']*'|true|false|nil/
      LOCK = /\.(?:lock!?|with_lock|for_update|for_share|lock_style)(?![\w?])/
      ATTEMPT = /\bretr(?:y|ies|iable)\b|Stale|NoExistingObject/
      # A `rescue` stands below, what names the error and takes a block above.
      NEAR_BEFORE = 5
      NEAR_AFTER = 10
      AGAIN = /\.(?:lock!|with_lock\b)/
      FINDERS = %w[where exclude find find_by find_by! exists? first last take count sum average minimum maximum min max avg pluck pick get
                   order limit select_map].freeze
      BARE = /(?<call>\.(?:#{FINDERS.map { |name| Regexp.escape(name) }.join("|")}))
              [ ](?=[\w:"'\[@])(?!(?:if|unless|and|or|do|then|while|until|rescue|in|end|else|elsif|when|ensure)\b)
              (?<given>(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^()\[\]{};"']|\((?:[^()]|\([^()]*\))*\)|\[[^\[\]]*\])+?)
              (?=\s+(?:if|unless|and|or|do|then|while|until|rescue|end|else|elsif|when|ensure)\b|\s*(?:[;})\]{]|&&|\|\||\ [?]\ )|\s*\z)/x
      private_constant :FINDERS, :BARE
      private_constant :AGAIN, :ATTEMPT, :NEAR_BEFORE, :NEAR_AFTER, :MOST_LINES, :GOES_ON, :UNFINISHED, :COMMENT, :LITERAL, :LOCK

      module_function

      # Arguments are in parentheses, though they may be written without.
      # @param site [Integer, nil] see {CallSite}
      # @return [String] empty where there is no source
      def at(site)
        lines = site ? lines_to(site) : []
        text = lines.pop.to_s
        text = join(lines.pop, text) while lines.any? && above?(lines.last, text)
        text.gsub(BARE, '\k<call>(\k<given>)')
      end

      # @return [Integer] how often records that were read are read again, to be locked
      def locked_again(text) = text.scan(AGAIN).size

      # @param text [String]
      # @return [String, nil] the value that a column is written with, where it is a literal
      def literal(text, column) = text[/\b#{column}: (#{LITERAL})(?=\s*[,)}])/, 1]

      # @param site [Integer, nil]
      # @return [Boolean] whether what is written near it is tried again where somebody else has written the same meanwhile
      def attempted?(site)
        lines(site, NEAR_BEFORE, NEAR_AFTER).any? { |line| line.match?(ATTEMPT) }
      end

      # SQLite locks no rows, so the statement does not always tell.
      # @return [Boolean] whether rows are locked by what is written
      def locks?(text) = text.match?(LOCK)

      # @return [Boolean] whether a column is written with something else, which may change
      def varies?(text, column) = text.match?(/\b#{column}: /) && literal(text, column).nil?

      def lines_to(site) = lines(site, MOST_LINES - 1, 0)
      private_class_method :lines_to

      # The one of the site, with some before it and some after.
      def lines(site, before, after)
        file = File.expand_path(CallSite.path(site), CallSite.root)
        return [] unless File.file?(file)

        line = CallSite.line(site)
        written = File.foreach(file).first(line + after).drop([line - before - 1, 0].max)
        written.map { |text| text.scrub.chomp.sub(COMMENT, "").strip }
      end
      private_class_method :lines

      # A comment between the lines of a chain was made empty.
      def above?(line, text)
        text.match?(GOES_ON) || line.match?(UNFINISHED) || text.count(")") > text.count("(")
      end
      private_class_method :above?

      def join(line, text) = line.end_with?(",") ? "#{line} #{text}" : "#{line}#{text}"
      private_class_method :join
    end
  end
end
