# frozen_string_literal: true

require "castellan/doctor"
require_relative "applications_world"

# Lessons from real applications: a fix loses no data and is for the records that need it.
class DetectApplicationsTest < Minitest::Test
  World = ApplicationsWorld

  def test_a_condition_with_an_alternative_becomes_no_association
    assert_nil only { World::Project.order(:id).map { |project| project.shared_versions.to_a } }.fix
    assert_nil only { World::Project.order(:id).map { |project| project.own_or_system_wide.to_a } }.fix
  end

  def test_a_condition_that_is_not_on_the_line_has_no_fix
    open = World::Version.where(status: "open")
    [->(project) { project.versions.merge(open).to_a }, ->(project) { filtered(project.versions).where(rank: 0).to_a }]
      .each { |work| assert_nil only { World::Project.order(:id).map(&work) }.fix }
  end

  def test_a_condition_other_than_equality_is_kept_or_there_is_no_fix
    finding = only { World::Project.order(:id).map { |project| World::Version.where(project_id: project.id).where("rank > 0").last } }
    assert_nil finding.fix
    finding = only { World::Project.order(:id).map { |project| project.versions.where("rank > 0").last } }
    assert_includes finding.fix, 'has_one :last_version, -> { where("rank > 0").order(id: :desc) }'
  end

  def test_two_findings_never_declare_one_name_with_two_scopes
    findings = Castellan::Detect.watch(slow_ms: nil) do
      World::Project.order(:id).map do |project|
        [project.versions.where(status: "open").last,
         project.versions.where(rank: 0).last]
      end
    end
    declared = findings.map { |finding| finding.fix[/has_one :(\w+), -> \{ (.*?) \}/] }
    assert_equal 2, findings.size
    assert_equal 2, declared.uniq.size
    assert_equal 2, declared.map { |code| code[/:(\w+)/] }.uniq.size, declared.inspect
  end

  def test_the_fix_is_for_the_class_that_needs_it_if_a_line_loads_several
    work = lambda do
      events = [World::Issue.order(:id).preload(:tracker), World::Journal.order(:id).preload(issue: :project)]
      events.flat_map do |scope|
        scope.to_a
      end.map(&:title)
    end
    finding = only(&work)
    assert_includes finding.fix, "add .preload(issue: :tracker) where the journals are loaded"
    trial = Castellan::Doctor.try(finding, &work)
    assert_predicate trial, :accepted?, trial.to_s
  end

  def test_records_that_were_preloaded_themselves_are_followed_to_the_first_load
    work = lambda do
      World::Taxonomy.order(:id).includes(root: :children).map do |taxonomy|
        [taxonomy.root.names, taxonomy.root.children.map(&:names)]
      end
    end
    finding = only(&work)
    assert_includes finding.fix, "add .preload(root: { children: :children }) where the taxonomies are loaded"
    trial = Castellan::Doctor.try(finding, &work)
    assert_predicate trial, :accepted?, trial.to_s
  end

  def test_conditions_on_a_joined_table_are_not_those_of_the_model
    finding = only { World::Project.order(:id).map(&:member_users) }
    refute_includes finding.fix.to_s, "where(admin:"
  end

  def test_the_type_condition_of_single_table_inheritance_is_ignored
    finding = only { World::Issue.order(:id).map { |issue| World::User.where(id: issue.author_id).first.name } }
    refute_includes finding.fix.to_s, "type"
    finding = only { [1, 2, 3].map { |number| World::Group.where(id: number).first&.name } }
    assert_includes finding.fix, "ApplicationsWorld::Group.where(id: values)"
  end

  def test_the_files_of_one_subclass_are_asked_of_the_subclass
    finding = only { World::Issue.order(:id).map { |issue| World::Picture.where(issue_id: issue.id).count } }
    ids = World::Issue.ids
    each = ids.to_h { |id| [id, World::Picture.where(issue_id: id).count] }.reject { |_id, count| count.zero? }
    assert_equal each, suggested(finding, ids)
    finding = only { World::Issue.order(:id).map { |issue| World::Film.exists?(issue_id: issue.id) } }
    assert_includes finding.fix, "ApplicationsWorld::Film.where(issue_id: values)"
  end

  def test_a_polymorphic_association_belongs_to_the_owners_that_the_statements_name
    work = lambda do
      projects = World::Project.order(:id).to_a
      issues = World::Issue.order(:id).to_a
      [projects.map(&:name), issues.map { |issue| issue.notes.size }]
    end
    finding = only(&work)
    assert_equal "ApplicationsWorld::Issue#notes", finding.association
    assert_equal finding.association, only { World::Base.connection.unprepared_statement(&work) }.association
    trial = Castellan::Doctor.try(finding, &work)
    assert_predicate trial, :accepted?, trial.to_s
  end

  def test_a_query_without_the_type_of_the_owners_is_no_polymorphic_association
    ids = World::Issue.order(:id).ids
    finding = only { World::Issue.order(:id).map { |issue| World::Note.where(noteable_id: issue.id).to_a.size } }
    assert_nil finding.association
    assert_equal World::Note.where(noteable_id: ids).group_by(&:noteable_id), suggested(finding, ids)
    finding = only do
      World::Issue.order(:id).map { |issue| World::Note.where(noteable_id: issue.id, noteable_type: "ApplicationsWorld::Issue").to_a.size }
    end
    assert_equal "ApplicationsWorld::Issue#notes", finding.association
  end

  def test_what_polymorphic_owners_have_is_counted_at_once
    finding = only { World::Project.order(:id).map { |project| project.notes.count } }
    ids = World::Project.ids
    assert_equal ids.to_h { |id| [id, 1] }, suggested(finding, ids)
    finding = only { [*World::Project.order(:id), *World::Issue.order(:id)].map { |one| one.notes.count } }
    assert_nil finding.fix
  end

  def test_the_files_of_several_subclasses_are_not_asked_together
    finding = only do
      World::Issue.order(:id).map do |issue|
        [World::Picture.where(issue_id: issue.id).count, World::Film.where(issue_id: issue.id).count]
      end
    end
    assert_nil finding.fix
    assert_includes finding.fix_refused, "several subclasses of ApplicationsWorld::File"
  end

  def test_a_scope_or_method_with_a_limit_is_not_preloaded
    [->(project) { project.versions.newest(2).to_a }, ->(project) { project.versions.newest(1).first },
     ->(project) { project.versions.two.map(&:id) }].each do |work|
      finding = only { World::Project.order(:id).map(&work) }
      assert_nil finding.fix
      assert_includes finding.fix_refused, "a limit for each record of ApplicationsWorld::Project#versions"
    end
  end

  def test_a_list_of_something_else_beside_the_owner_is_no_batch
    finding = only { World::Project.order(:id).map { |project| project.versions.where(status: %w[open closed]).map(&:id) } }
    assert_equal ["ApplicationsWorld::Project#versions", 5], [finding.association, finding.count]
  end

  def test_a_scope_for_deleted_rows_does_not_hide_the_association
    finding = only { World::Issue.order(:id).map { |issue| World::File.where(issue_id: issue.id).count } }
    assert_equal "ApplicationsWorld::Issue#files", finding.association
  end

  def test_values_and_ids_of_an_ordered_association_use_the_preload
    [-> { World::Variant.order(:id).map(&:image_ids) }, -> { World::Variant.order(:id).map { |variant| variant.images.pluck(:id) } },
     -> { World::Variant.order(:id).map { |variant| variant.images.first.id } }].each do |work|
      finding = only(&work)
      assert_match(/\Aadd \.preload\(:images\) where the variants are loaded: \S+\z/, finding.fix)
      trial = Castellan::Doctor.try(finding, &work)
      assert_predicate trial, :accepted?, trial.to_s
    end
  end

  def test_a_method_that_checks_loaded_records_first_needs_the_preload
    work = -> { World::Variant.order(:id).map { |variant| variant.price_in("USD").cents } }
    finding = only(&work)
    assert_includes finding.fix, "add .preload(:prices) where the variants are loaded"
    trial = Castellan::Doctor.try(finding, &work)
    assert_predicate trial, :accepted?, trial.to_s
  end

  def test_a_value_shared_by_all_records_is_queried_once
    currency = "USD"
    finding = only { World::Variant.order(:id).map { |variant| variant.prices.find_by(currency: currency).cents } }
    assert_includes finding.fix, "Price.where(variant_id: values).where(currency: currency)"
  end

  def test_the_preload_is_not_proposed_at_an_unrelated_load
    work = lambda do
      names = World::Variant.order(:id).to_a.map(&:product_id)
      variants = World::Variant.where(product_id: names).to_a
      variants.map { |variant| variant.stock_items.to_a }
    end
    finding = only(&work)
    assert_includes finding.parent_location, ":#{__LINE__ - 4}"
    trial = Castellan::Doctor.try(finding, &work)
    assert_predicate trial, :accepted?, trial.to_s
  end

  def test_the_preload_is_not_proposed_at_a_load_within_a_block
    work = lambda do
      World::Product.order(:id).preload(:variants).map do |product|
        others = World::Variant.where(product_id: [product.id, product.id + 1]).to_a
        [others.size, product.variants.map { |variant| variant.stock_items.size }]
      end
    end
    finding = Castellan::Detect.watch(slow_ms: nil, &work).find { |one| one.association == "ApplicationsWorld::Variant#stock_items" }
    assert_includes finding.fix, "add .preload(variants: :stock_items) where the products are loaded"
  end

  private

  # Runs the suggested code.
  def suggested(finding, values)
    code = finding.fix[/ApplicationsWorld.*/].gsub("values", values.inspect)
    World.instance_eval(code, __FILE__, __LINE__)
  end

  def filtered(versions) = versions.where(status: "open")

  def only(&work)
    findings = Castellan::Detect.watch(slow_ms: nil, &work)
    assert_equal 1, findings.size, findings.join("\n")
    findings.first
  end
end
