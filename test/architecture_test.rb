# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/source_tree"

# Keeps docs/design.md ("Rooms") true. A failure here means: put the code into another room, or change the design and then
# this table, in one commit that says why.
class ArchitectureTest < Minitest::Test
  CORE = %i[core].freeze
  OBSERVE = %i[core store instrument detect profile].freeze
  RENDER = %i[core resource plan rows serialize document].freeze
  KEEP = %i[core store versions cache].freeze
  ALL_BUT_OUTER = (OBSERVE | RENDER | KEEP | %i[keeper http http_cache]).freeze

  # room => the rooms it may name or require, besides itself
  USES = {
    core: [],
    store: CORE,
    instrument: CORE,
    detect: %i[core instrument],
    profile: %i[core instrument store detect],
    resource: CORE,
    plan: %i[core resource],
    rows: %i[core resource plan],
    serialize: %i[core resource plan],
    document: (RENDER - %i[document]) | %i[http],
    verify: RENDER,
    serializer: RENDER,
    compat: %i[core serializer],
    versions: %i[core store],
    cache: %i[core store versions],
    keeper: RENDER | KEEP,
    write: %i[core resource plan rows],
    http: CORE,
    http_cache: %i[core store cache http],
    purge: RENDER | KEEP | %i[http_cache],
    rate_limit: %i[core store],
    serve: ALL_BUT_OUTER | %i[write purge],
    load_test: CORE,
    doctor: :anything,
    cli: :anything,
    controller: :anything,
    railtie: :anything,
    generators: :anything
  }.freeze

  # Rooms at the rim: named or required only by these. castellan.rb is the table of contents and may autoload everything.
  USED_ONLY_BY = { doctor: %i[cli], cli: [], controller: [], railtie: %i[doctor], generators: [] }.freeze

  # room => features of other gems that its files may require
  LIBRARIES = {
    contents: %w[active_support],
    store: %w[redis-client redis_client dalli active_support],
    cache: %w[brotli zstd-ruby],
    instrument: %w[active_support active_record sequel pg redis-client redis_client],
    detect: %w[active_support active_record sequel],
    profile: %w[stackprof memory_profiler],
    rows: %w[active_record sequel sqlite3 pg],
    serializer: %w[active_support],
    versions: %w[active_record sequel pg sqlite3],
    write: %w[active_record sequel pundit action_policy],
    rate_limit: %w[rack],
    serve: %w[rack jwt],
    doctor: %w[rack active_record active_job action_mailer sequel sidekiq stackprof memory_profiler],
    cli: %w[tty-progressbar tty-table],
    railtie: %w[rails active_support action_controller],
    generators: %w[rails active_support generators]
  }.freeze

  STANDARD_LIBRARY = %w[
    benchmark bigdecimal cgi/escape cgi/util date delegate did_you_mean digest/sha2 English erb etc fileutils forwardable io/console io/wait
    ipaddr json monitor net/http net/protocol open3 optparse pathname rbconfig securerandom set shellwords singleton socket stringio strscan
    tempfile time timeout tmpdir uri weakref yaml zlib objspace ripper openssl
  ].freeze
  OPENSSL = %i[load_test doctor profile].freeze

  # Not loaded by the first require of any room. The hooks and the version are loaded where Rails is in the bundle.
  HEAVY = %r{/(?:active_(?:record|model|support(?!/(?:lazy_load_hooks|(?:gem_)?version)))
               |sequel|rails|railties|openssl|sinatra|pg|sqlite3|puma)(?:\.rb|\.so|/)}x
  LIGHT = %i[core store instrument detect profile resource plan rows serialize document versions cache keeper http http_cache
             load_test].freeze
  RACK = %r{/rack(?:\.rb|/)}

  # Files that hold more than the constant of their name, or none.
  SEVERAL_CONSTANTS = %w[castellan/errors.rb castellan/config.rb castellan/serializer/errors.rb castellan.rb].freeze

  # Files that add to a constant of another file, as the design says.
  REOPENS = { "castellan/document.rb" => %w[Castellan::Resource],
              "castellan/write.rb" => %w[Castellan::Resource],
              "castellan/compat/jsonapi_serializer.rb" => %w[JSONAPI JSONAPI::Serializer],
              "castellan/compat/fast_jsonapi.rb" => %w[FastJsonapi FastJsonapi::ObjectSerializer FastJsonapi::MandatoryField
                                                       FastJsonapi::Relationship FastJsonapi::Scalar FastJsonapi::Attribute
                                                       FastJsonapi::Link] }.freeze

  # Adapters and their parts, which are named by role and vendor.
  ADAPTER = %r{\A(?:.*_rows/|.*/(?:active_record|sequel)_\w+\.rb)}
  # Roles that an application names together with their room, as in `use Castellan::Detect::Middleware`.
  ROLES = %w[middleware linter].freeze

  # Methods that Castellan defines, and objects of others may have too: those of Ruby, Rack and the ORMs, and the optional
  # methods of what an application gives (an observer, a store, versions, evidence, an authorizer, a proxy).
  OPTIONAL = %w[address array body cache call close coder current each empty? enter findings id keys klass loaded loaded?
                log_connection_yield missing model of? options primary_key purge record result size span sql status strand
                supports? to_a to_ary to_h values write zone].freeze

  # The bounded cache, and collections that are none: a store counts bytes, a statement is closed when it leaves, a queue ends.
  SHRINKING = %w[castellan/bounded_cache.rb castellan/store/memory_store.rb castellan/postgres_statements.rb
                 castellan/sqlite_statements.rb castellan/rows/together.rb].freeze
  SHRINKS = /@\w+\.shift\b|\.clear\b.*\bif\b.*\.size|\{\} if .*\.size/

  TREE = Castellan::SourceTree.new(File.join(ROOT, "lib"))
  LINES = TREE.files.to_h { |file| [file, File.readlines(File.join(ROOT, "lib", file)).grep_v(/\A\s*#/)] }

  # Rails looks for generators in places of its own.
  GENERATORS = TREE.files.select { |file| file.start_with?("generators/") }

  # Found under the names of another gem's files.
  SHIMS = TREE.files.select { |file| file.start_with?("castellan/compat/shims/") }

  def self.room_of(file)
    return :generators if file.start_with?("generators/")

    name = file[%r{\Acastellan/([^/.]+)}, 1] or return :contents
    USES.key?(name.to_sym) ? name.to_sym : :core
  end

  def self.room_of_constant(name)
    segment = name.split("::")[1] or return :core
    USES.keys.find { |room| room.to_s.delete("_") == segment.downcase } || :core
  end

  ROOMS = TREE.files.map { |file| room_of(file) }.uniq - %i[contents generators]

  def test_every_folder_is_a_room_of_the_design
    folders = TREE.files.filter_map { |file| file[%r{\Acastellan/([^/.]+)/}, 1] }.uniq.map(&:to_sym)
    assert_empty folders - USES.keys, "folders of lib/castellan that are no room"
  end

  def test_rooms_name_only_the_rooms_they_may_use
    offences = each_reference.reject { |from, to, _| allowed?(from, to) }
    assert_empty(offences.map { |from, to, where| "#{where}: #{from} may not use #{to}" })
  end

  def test_rooms_require_only_the_rooms_they_may_use
    offences = each_require(ours: true).reject { |from, feature, _| allowed?(from, self.class.room_of(feature)) }
    assert_empty(offences.map { |from, feature, where| "#{where}: #{from} may not require #{feature}" })
  end

  def test_rooms_require_only_the_libraries_they_may_use
    offences = each_require(ours: false).reject { |from, feature, _| library?(from, feature) }
    assert_empty(offences.map { |from, feature, where| "#{where}: #{from} may not require #{feature}" })
  end

  def test_every_required_file_exists
    missing = each_require(ours: true).reject { |_, feature, _| file_or_extension?(feature) }
    assert_empty(missing.map { |_, feature, where| "#{where}: #{feature} does not exist" })
  end

  def test_the_path_of_a_file_is_the_name_of_its_constant
    files = TREE.files - SEVERAL_CONSTANTS - GENERATORS - SHIMS
    assert_empty(files.reject { |file| only_requires?(file) || TREE.definitions[file].any? { |name| names_file?(name, file) } })
  end

  def test_a_file_has_one_public_constant
    offences = (TREE.files - SEVERAL_CONSTANTS - GENERATORS).to_h { |file| [file, strangers(file)] }.reject { |_, names| names.empty? }
    assert_empty offences
  end

  def test_no_two_files_define_classes_of_one_name
    files = (TREE.files - SEVERAL_CONSTANTS - GENERATORS - SHIMS).grep_v(ADAPTER)
    same = files.group_by { |file| File.basename(file, ".rb") }.except(*ROLES).select { |_, some| some.size > 1 }
    assert_empty same
  end

  # The other way is `require_relative`. The extension is built outside of lib, and Rails finds generators by itself.
  def test_only_castellan_rb_autoloads_except_for_files_that_need_a_library
    libraries = [*LIBRARIES.values.flatten, "openssl"]
    offences = scan(/^\s*autoload :\w+, "([^"]+)"/).reject do |file, feature|
      file == "castellan.rb" || TREE.requires["#{feature}.rb"].keys.any? { |one| libraries.include?(one.split("/").first) }
    end
    assert_empty offences
    required = scan(/^\s*require "(castellan[^"]*)"/).filter_map { |file, feature| feature unless GENERATORS.include?(file) }
    assert_equal %w[castellan/castellan_ext], required.uniq
  end

  def test_constants_are_neither_removed_nor_probed
    assert_empty scan(/remove_const|(?<!Rack\.)autoload\?/)
  end

  def test_respond_to_asks_objects_of_others_only
    definitions = scan(/\bdef (?:self\.)?(\w+[?!]?)|\battr_(?:reader|accessor) (.*)/)
    defined = definitions.flat_map { |_, *names| names.compact.join.scan(/\w+[?!]?/) }
    asked = scan(/respond_to\?\(:(\w+[?!]?)/)
    assert_operator asked.size, :>, 50
    assert_empty(asked.select { |_, name| defined.include?(name) && !OPTIONAL.include?(name) })
  end

  def test_there_is_one_kind_of_bounded_cache
    assert_equal SHRINKING.sort, scan(SHRINKS).map(&:first).uniq.sort
  end

  def test_requiring_castellan_loads_nothing_heavy
    loaded = loaded_by("castellan").fetch("castellan")
    assert_includes loaded, File.join(ROOT, "lib/castellan.rb")
    assert_empty loaded.grep(HEAVY) + loaded.grep(RACK) + loaded.grep(%r{/json\.rb\z})
  end

  def test_every_room_can_be_required_alone
    rooms = ROOMS - %i[core railtie]
    loaded_by(*rooms.map { |room| "castellan/#{room}" }).each_value.zip(rooms) do |loaded, room|
      assert_includes loaded, File.join(ROOT, "lib/castellan/#{room}.rb")
      assert_empty loaded.grep(LIGHT.include?(room) ? Regexp.union(HEAVY, RACK) : HEAVY), room
    end
  end

  def test_every_file_of_the_core_can_be_required_alone
    core = TREE.files.select { |file| self.class.room_of(file) == :core } - %w[castellan/version.rb] # Bundler has read it in the gemspec
    loaded_by(*core.map { |file| file.delete_suffix(".rb") }).each_value.zip(core) do |loaded, file|
      assert_includes loaded, File.join(ROOT, "lib", file)
    end
  end

  def test_each_autoloaded_constant_can_be_named_first
    names = File.read(File.join(ROOT, "lib/castellan.rb")).scan(/^  autoload :(\w+)/).map { |name,| "Castellan::#{name}" }
    assert_operator names.size, :>, 20
    assert_equal names, loaded_by(*names, before: "castellan").keys
  end

  def test_castellan_off_is_read_from_the_environment
    program = "print Castellan.off?"
    assert_equal "true", run_ruby("-rcastellan", "-e", program, env: { "CASTELLAN" => "off" })
    assert_equal "false", run_ruby("-rcastellan", "-e", program, env: { "CASTELLAN" => nil })
  end

  private

  # @return [Array<Array(String, String)>] the file and the groups of each line of code that matches
  def scan(pattern)
    LINES.flat_map { |file, lines| lines.filter_map { |line| [file, *line.match(pattern)&.captures] if line.match?(pattern) } }
  end

  def allowed?(from, to)
    return true if from == to || from == :contents || to == :contents # it only autoloads
    return false unless USED_ONLY_BY.fetch(to, USES.keys).include?(from)

    USES.fetch(from) == :anything || USES.fetch(from).include?(to)
  end

  def library?(room, feature)
    return OPENSSL.include?(room) if feature == "openssl"

    STANDARD_LIBRARY.include?(feature) || LIBRARIES.fetch(room, []).any? { |name| feature == name || feature.start_with?("#{name}/") }
  end

  def each_reference
    TREE.references.flat_map do |file, names|
      names.map { |name, line| [self.class.room_of(file), self.class.room_of_constant(name), "lib/#{file}:#{line} (#{name})"] }
    end
  end

  def each_require(ours:)
    TREE.requires.flat_map do |file, features|
      chosen = features.select { |feature, _| feature.match?(%r{\Acastellan(/|\z)}) == ours }
      chosen.map { |feature, line| [self.class.room_of(file), feature, "lib/#{file}:#{line}"] }
    end
  end

  def file_or_extension?(feature)
    feature == "castellan/castellan_ext" || TREE.files.include?("#{feature}.rb")
  end

  # The entry of a room may be a list of requires and a comment.
  def only_requires?(file)
    (TREE.definitions[file] - %w[Castellan]).empty? && file.count("/") == 1 && TREE.requires[file].any?
  end

  def names_file?(constant, file)
    constant.gsub("::", "/").downcase == file.delete_suffix(".rb").delete("_")
  end

  # Constants that a file defines besides its own, those within it, and the modules around it.
  def strangers(file)
    own = TREE.definitions[file].find { |name| names_file?(name, file) }.to_s
    (TREE.definitions[file] - TREE.private_definitions[file]).reject do |name|
      name == own || name.start_with?("#{own}::") || own.start_with?("#{name}::") || REOPENS.fetch(file, []).include?(name)
    end
  end

  # Requires each feature, or names each constant, in a fork of one process that raises warnings.
  # @return [Hash{String => Array<String>}] the files that each of them loaded
  def loaded_by(*names, before: "set")
    program = <<~RUBY
      require "json"
      require #{before.dump}
      ARGV.each do |name|
        Process.wait(fork do
          before = $LOADED_FEATURES.dup
          name.start_with?("Castellan::") ? Object.const_get(name) : require(name)
          $stdout.write(JSON.generate([name, $LOADED_FEATURES - before]), "\\n")
          $stdout.flush
          exit!(true)
        end)
        abort "\#{name} does not load alone" unless $?.success?
      end
    RUBY
    strict = ["-w", "-I#{ROOT}/lib", "-r#{ROOT}/test/support/raise_warnings.rb"]
    output, errors, status = Open3.capture3(RbConfig.ruby, *strict, "-e", program, *names)
    assert_predicate status, :success?, errors
    output.lines.to_h { |line| JSON.parse(line) }
  end
end
