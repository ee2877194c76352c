# frozen_string_literal: true

require "test_helper"
require "castellan/detect"

class DetectConditionsTest < Minitest::Test
  Conditions = Castellan::Detect::Conditions

  def test_conditions_joined_by_and_are_separated
    { "select * from a where x = ? and y > ? order by z limit ?" => ["x = ?", "y > ?"],
      "select * from a where (x is null or x = ?) and (y = ?)" => ["x is null or x = ?", "y = ?"],
      "select * from a where (x = ? and (y = ?))" => ["x = ?", "y = ?"],
      "select * from a where x between ? and ? and y = ?" => ["x between ? and ?", "y = ?"],
      "select * from a where x = ? or y = ? and z = ?" => ["x = ? or y = ? and z = ?"],
      "select * from a where x in (select y from b where z = ?)" => ["x in (select y from b where z = ?)"],
      "select (select ? from b where c = ?) from a" => [], "select * from a" => [] }
      .each { |sql, conditions| assert_equal conditions, Conditions.all(sql), sql }
  end

  def test_columns_of_alternatives_and_of_joined_tables_need_not_be_equal
    { "select * from versions where (versions.project_id is null or versions.project_id = ?)" => [],
      "select * from versions where versions.project_id = ? or sharing = ?" => [],
      "select * from versions where (a = ? or b = ?) and versions.status = ?" => ["status"],
      "select users.* from users inner join members on members.user_id = users.id where members.project_id = ? and users.status = ?" =>
        ["status"] }.each { |sql, equal| assert_equal equal, Castellan::Detect::Shape.of(sql).equal, sql }
  end
end
